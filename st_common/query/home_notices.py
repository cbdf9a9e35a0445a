"""What a home has that the writer of a statement should know of: objects of other streams, features left out."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from st_common.config.home import Home
from st_common.query.lookup import logged_streams
from st_common.query.plain import is_plain
from st_common.query.problem import Problem

if TYPE_CHECKING:
    from st_common.query.text import Statement

_MOST = 10  # objects that are named
_TELLS = frozenset(("register", "replace", "create_stream"))


def notices_of_home(home: Home, statements: "Sequence[Statement]") -> Iterator[Problem]:
    """Notices about statements that fit their streams; one for each layer, and for each of the first objects.

    Args:
        home: where tables lie.
        statements: with their names as they are declared.
    """
    told = [
        one
        for one in statements
        if one.op in _TELLS and one.plan is not None and not is_plain(one.plan)
    ]  # a plain rectangle has neither, and most of a million queries are such
    yield from _of_layers(home, told)
    yield from _of_objects(home, told)


def _of_layers(home: Home, statements: "Iterable[Statement]") -> Iterator[Problem]:
    """Which layers lack features of their files."""
    joined = {
        one.plan.join.layer: one
        for one in reversed([*statements])
        if one.plan is not None and one.plan.join is not None
    }
    for layer, statement in joined.items():
        from st_common.layers.faults import REJECTED
        from st_common.layers.stored_faults import stored_faults  # imports Delta

        lost = sum(one.outcome == REJECTED for one in stored_faults(home, layer))
        if lost:
            features = "feature was" if lost == 1 else "features were"
            yield statement.problem(
                f"{lost:,} {features} rejected when layer {layer!r} was loaded, and can be in no answer",
                at="layer",
                hint=f"fairway layer show {layer} --all names them",
            )


def _of_objects(home: Home, statements: "Iterable[Statement]") -> Iterator[Problem]:
    """Which objects that regions go with are those of another stream, as far as anybody has been seen."""
    asked: dict[tuple[str, str], Statement] = {}
    for one in statements:
        if one.plan is not None:
            for focal in one.plan.focals:
                asked.setdefault((one.plan.stream, focal), one)
    strangers = _strangers(home, [*asked]) if asked else []
    for stream, focal, other in strangers[:_MOST]:
        yield asked[stream, focal].problem(
            f"stream {stream!r} has had no object {focal!r} so far, stream {other!r} has: "
            "the answer is empty until that comes",
            at="inside",
            hint=f"'{other}.{focal}' goes with the object of {other}",
        )
    if len(strangers) > _MOST:
        more = len(strangers) - _MOST
        yield asked[strangers[_MOST][:2]].problem(
            f"{more:,} more objects have been seen in other streams alone", at="inside"
        )


def _strangers(
    home: Home, asked: Sequence[tuple[str, str]]
) -> list[tuple[str, str, str]]:
    """Those of some streams and objects where another stream alone has had the object, with that stream."""
    focals = sorted({focal for _, focal in asked})
    seen = {name: _seen(home, name, focals) for name in logged_streams(home)}
    others = (
        (stream, focal, next((name for name in seen if focal in seen[name]), None))
        for stream, focal in asked
        if focal not in seen.get(stream, ())
    )
    return [
        (stream, focal, other) for stream, focal, other in others if other is not None
    ]


def _seen(home: Home, stream: str, objects: Sequence[str]) -> frozenset[str]:
    """Which of some objects a stream has had, as far as its fixes are archived."""
    from st_common import tables  # imports Delta: only for who names an object

    path = home.table("latest", stream)
    if not tables.exists(path):
        return frozenset()
    rows = tables.read(path, columns=["object"], filters=[("object", "in", objects)])
    return frozenset(rows["object"].unique().to_pylist())
