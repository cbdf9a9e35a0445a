"""Tags that a query names and no feature of its layer has: a slip of the pen, or a layer that is loaded later."""

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from st_common.query.lowering.expression import Term
from st_common.query.pair_columns import own_name, speed_tag
from st_common.query.problem import Problem, did_you_mean

if TYPE_CHECKING:
    from st_common.query.text import Statement

_OF_FEATURES = ("fid", "kind")


def notices_of_tags(
    statement: "Statement", terms: Iterable[Term], known: Collection[str]
) -> Iterator[Problem]:
    """A notice for each place of a tag that no feature has; a feature without it shows NULL, so all of them do.

    Args:
        statement: the statement; it joins a layer.
        terms: its expressions, with tags as plans call them.
        known: the names of the tags of the layer's features.
    """
    names = {name.casefold() for name in (*known, *_OF_FEATURES)}
    for term in terms:
        columns = term.columns if term.tags else ()
        for column, span in columns:
            as_speed = speed_tag(column)
            tag = own_name(column) if as_speed is None else as_speed[0]
            if tag is None or tag.casefold() in names:
                continue
            message = f"no feature of the layer has the tag {tag!r}: it is NULL"
            hint = did_you_mean(tag, [*known, *_OF_FEATURES])
            yield statement.problem(message, at=span, hint=hint)
