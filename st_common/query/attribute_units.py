"""Tags of features beside attributes: in the unit that the stream's settings declare for the attribute.

Where the settings say `speed = "double km/h"` and `load = "double"`:

speed > r.maxspeed + 5 km/h     speed > "other.maxspeed in km/h" + 5
load > r.lanes                  load > TRY_CAST("other.lanes" AS DOUBLE)
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from st_common.config.units import Measure, unit_of
from st_common.query.fix_columns import BUILTINS
from st_common.query.grammar.nodes import Refused, Span
from st_common.query.lowering.expression import COMPARISONS, Term
from st_common.query.lowering.tags import as_number, measured_together
from st_common.query.measures import Placed, expected, put
from st_common.query.pair_columns import as_speed, of_other, own_name, speed_tag

if TYPE_CHECKING:
    from st_common.config.stream import StreamSettings

_NUMBERS = ("double", "long")
_MPS = "m/s"


@dataclass(slots=True)
class FittedTags:
    """What became of the tags of a term.

    Attributes:
        rest: numbers with units that stand beside no tag.
        names: what columns of tags are called now, by what they were called.
        problems: what cannot be, and where.
    """

    rest: list[Placed] = field(default_factory=list)
    names: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    problems: list[Refused] = field(default_factory=list)


def fit_tags(
    term: Term, tree: exp.Expr, places: Sequence[Placed], stream: "StreamSettings"
) -> FittedTags:
    """Makes numbers of the tags in a tree that are compared with attributes that are numbers, in place.

    Args:
        term: the term that the tree is of.
        tree: the tree; attributes in it are called as the settings call them.
        places: its numbers with units; those beside a tag are brought into the same unit.
        stream: the settings.
    """
    fitted, done = FittedTags(), set[int]()
    together = list(measured_together(tree, COMPARISONS)) if term.tags else []
    for leaves in together:
        tags = [leaf for leaf in leaves if own_name(_column(leaf)) is not None]
        if not tags or not any(_is_number(_column(leaf), stream) for leaf in leaves):
            continue
        beside = [one for one in places if any(one.literal is leaf for leaf in leaves)]
        units = dict(unit for leaf in leaves for unit in _units(leaf, stream))
        if len(units) > 1:
            fitted.problems.append(_of_several(term, sorted(units)))
        elif units:
            ((said, unit),) = units.items()
            _say_speeds(tags, said, fitted)
            fitted.problems += _put(beside, unit, f"the tag is compared with {said}")
            done.update(id(one.literal) for one in beside)
        else:
            _say_numbers(tags)
    fitted.rest += [one for one in places if id(one.literal) not in done]
    return fitted


def columns_now(
    term: Term, tree: exp.Expr, names: Mapping[str, set[str]]
) -> Iterator[tuple[str, Span]]:
    """The columns of a term and their places, tags as its tree calls them now."""
    still = {column.name for column in tree.find_all(exp.Column)}
    for name, span in term.columns:
        for now in sorted({name, *names.get(name, ())} & still or {name}):
            yield now, span


def _column(leaf: exp.Expr) -> str:
    """The name of a column; "" of what is none."""
    return leaf.name if isinstance(leaf, exp.Column) else ""


def _is_number(name: str, stream: "StreamSettings") -> bool:
    """Whether a column is an attribute that may stand beside the number of a tag: in a unit of speed, or in none."""
    unit = unit_of(stream.units.get(name, ""))
    is_number = name not in BUILTINS and stream.attributes.get(name) in _NUMBERS
    return is_number and (unit is None or unit.domain == "speed")


def _units(leaf: exp.Expr, stream: "StreamSettings") -> Iterator[tuple[str, Measure]]:
    """The unit of speed that a column is in, if it is in one: as the settings say it, and one of it."""
    name = _column(leaf)
    said = _MPS if name == "speed_mps" else stream.units.get(name, "")
    unit = unit_of(said)
    if unit is not None and unit.domain == "speed":
        yield said, unit


def _of_several(term: Term, units: Sequence[str]) -> Refused:
    message = f"a tag beside speeds in {' and in '.join(units)}"
    return Refused(message, term.span, "compare it with one of them")


def _say_speeds(tags: Sequence[exp.Expr], unit: str, fitted: FittedTags) -> None:
    """Calls tags as the speeds that they say, in a unit; one that is called as a speed already is what was meant."""
    for tag in tags:
        name = tag.name
        known = speed_tag(name)
        now = as_speed(of_other(known[0]) if known else name, unit)
        fitted.names[name].add(now)
        tag.set("this", exp.to_identifier(now, quoted=True))


def _say_numbers(tags: Sequence[exp.Expr]) -> None:
    for tag in tags:
        if speed_tag(tag.name) is None:
            tag.replace(as_number(tag.copy()))


def _put(places: Sequence[Placed], unit: Measure, hint: str) -> Iterator[Refused]:
    """Brings numbers with units into a unit of speed; what is no speed is refused."""
    for place in places:
        if unit.domain == place.measure.domain:
            put(place, unit)
        else:
            yield expected(place, unit, hint)
