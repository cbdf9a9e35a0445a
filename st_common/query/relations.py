"""What FROM may name, and which clauses each takes: streams, whose objects move and report, and layers of features.

A layer is asked as the stream of its features (`layers.relation`), so all that is asked of elements with an extent is
asked of it. What needs motion or time is refused by one table, `NOT_OF_LAYERS`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sqlglot import exp

from st_common.config.columns import GEOMETRY
from st_common.config.home import DEFAULT_GROUP, Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import stream_of_table
from st_common.layers.table_settings import TableSettings
from st_common.query.complaint import Complaint
from st_common.query.created_streams import FILE
from st_common.query.fix_columns import BUILTINS
from st_common.query.grammar.statements import expression_of
from st_common.query.plan import Plan
from st_common.query.plan_expressions import expressions_of
from st_common.regions.forecast import Forecast

MOTION = ("elapsed_s", "speed_mps", "heading_deg", "acceleration_mps2")
"""The columns of fixes that are against the fix before."""

_NONE_DECLARED: Mapping[str, TableSettings] = MappingProxyType({})

NOT_OF_LAYERS: Mapping[tuple[str, str], Callable[[Plan], object]] = {
    ("inside", "WILL ENTER"): lambda plan: isinstance(plan.inside, Forecast),
    ("detect", "DETECT"): lambda plan: plan.fence,
    ("lasting", "FOR"): lambda plan: plan.incident,
    ("lasting", "FOR above rows"): lambda plan: plan.outer and plan.outer.lasting_s,
    ("window", "WINDOW"): lambda plan: plan.window,
    ("window", "WINDOW above rows"): lambda plan: plan.outer and plan.outer.window,
    ("frame", "a window in brackets"): lambda plan: plan.frame,
    ("emit", "WITH VALID UNTIL"): lambda plan: plan.valid_until,
    ("emit", "RSTREAM"): lambda plan: plan.emit == "rstream",
}
"""What a layer does not take, by the clause that an error points at and what it is called: what makes it of a plan."""

NO_FEATURE = "no feature"
"""What the object is called that carries tags; it is gone from the beginning."""
_OWN = ("fid", "kind")  # the attributes of every feature
_WHY = "features of a layer do not move: they come, change and go with its versions"


def complaints_of_layer(plan: Plan, stream: StreamSettings) -> Iterator[Complaint]:
    """What needs motion or time, in a plan about a layer; nothing in one about a stream.

    Args:
        plan: what is asked.
        stream: the settings of what FROM names.
    """
    if stream.layer is None:
        return
    for (at, name), part_of in NOT_OF_LAYERS.items():
        if part_of(plan):
            yield Complaint(
                at=at,
                message=f"{name} is of objects that move, and {stream.layer!r} is a layer",
                hint=_WHY,
            )
    for at, name in _motion_in(plan):
        yield Complaint(
            at=at,
            message=f"{name} is of objects that move, and {stream.layer!r} is a layer",
            hint=_WHY,
        )


def _motion_in(plan: Plan) -> Iterator[tuple[str, str]]:
    """The columns of motion that a plan names, each with the clause that does."""
    places = {"columns": "select", "aggregate": "select"}
    for part, text in expressions_of(plan):
        if any(name in text for name in MOTION):  # most name none
            for column in expression_of(text).find_all(exp.Column):
                if column.name in MOTION:
                    yield places.get(part, part), column.name


def _tags_in(texts: Iterable[str]) -> set[str]:
    """The names of columns in expressions that may be tags, in small letters: those that not all features have."""
    named = {
        column.name.casefold()
        for text in texts
        for column in expression_of(text).find_all(exp.Column)
    }
    return named - {*BUILTINS, *_OWN, GEOMETRY}


def stream_of_layer(
    home: Home,
    streams: Mapping[str, StreamSettings],
    layer: str,
    texts: Iterable[str],
    before: Iterable[str] = (),
) -> tuple[dict[str, Any], StreamSettings]:
    """The stream of a layer's features as queries ask it: its table of settings, and the settings.

    Args:
        home: where the table of the layer lies.
        streams: the settings of all streams: who shares the layer's group says what its coordinates are.
        layer: its name.
        texts: the expressions that name tags, which become attributes.
        before: the tags that are attributes already.

    Raises:
        LayerError: there is no such layer.
    """
    from st_common.layers.announce import layer_group  # imports Delta
    from st_common.layers.conversion import crs_of_group
    from st_common.layers.relation import table_of_layer, tags_meant

    others = [one for one in streams.values() if one.layer is None]
    crs = crs_of_group(others, layer_group(home, layer) or DEFAULT_GROUP)
    names = _tags_in(texts)
    tags = tags_meant(names, tags_of(home, layer) if names else (), before)
    table = table_of_layer(home, layer, tags, crs=crs)
    return table, stream_of_table(layer, table, Path(FILE))


def tags_before(table: Mapping[str, Any]) -> list[str]:
    """The tags that are attributes by a table of settings of a layer's stream; none of an empty one."""
    return [name for name in table.get("attributes", {}) if name not in _OWN]


def source_of(
    home: Home, streams: Mapping[str, StreamSettings], plan: Plan
) -> StreamSettings:
    """The settings of what a plan is about: a stream, or that of a layer with the tags that the plan names.

    Args:
        home: where layers lie.
        streams: the settings of all streams.
        plan: its names are as they are declared.
    """
    stream = streams.get(plan.stream)
    if stream is not None and stream.layer is None:
        return stream
    texts = [text for _, text in expressions_of(plan)]
    return stream_of_layer(home, streams, plan.stream, texts)[1]


def carry_tags(home: Home, stream: StreamSettings, now_us: int) -> None:
    """Has the log of a layer's stream say which tags are attributes from here on, before a query names them.

    A query can be judged on an attribute that some record had, so there is one, about a feature that is none. A log
    without records needs it not: its first ones have all tags.

    Args:
        home: where the log lies.
        stream: the settings, with the tags.
        now_us: when it arrives, us UTC.
    """
    from st_common.formats.arrow_rows import packed
    from st_common.layers.relation import records_of_gone  # imports Delta
    from st_common.log.record_settings import log_for

    log = log_for(home, stream)
    if any(not one.control for one in log.segments(log.first())):
        none = records_of_gone([NO_FEATURE], stream, at_us=now_us)
        log.append(b"".join(packed(none)), arrival_us=now_us)


def tags_of(
    home: Home, layer: str, declared: Mapping[str, TableSettings] = _NONE_DECLARED
) -> set[str]:
    """The names of the tags that the features of a layer have in its newest version; of a table those it declares.

    Args:
        home: where layers lie.
        layer: the name of a layer or a table.
        declared: tables that are about to be made.
    """
    from st_common.layers.declared import table_settings  # imports Delta
    from st_common.layers.table import newest_version

    settings = table_settings(home, layer) or declared.get(layer)
    if settings is not None:
        return set(settings.columns)
    return _tags_at(home, layer, newest_version(home, layer))


@lru_cache(maxsize=16)
def _tags_at(home: Home, layer: str, version: int | None) -> set[str]:
    from st_common.layers.table import read_rows

    tags = read_rows(home, layer, version, columns=["tags"])["tags"]
    return {name for chunk in tags.chunks for name in chunk.keys.unique().to_pylist()}
