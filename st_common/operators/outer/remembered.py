"""What queries about rows remember: the rows that count now, and the values that were told of groups."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from st_common.operators.aggregate.groups import Groups
from st_common.operators.state.component import Keyed, Layout, Numbers
from st_common.operators.state.object_rows import no_numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class OuterRows(Keyed):
    """Rows of queries that satisfy what is asked of them, one for each key, sorted by it; n of them.

    Attributes:
        target: int64[n], a query and what names the row among its rows, as a partner (see `signed.names_of`).
        group: int64[n], the number of its group's name among the partners; of rows that are told as they are their
            object's.
        text: int64[n], the number of a text among the partners, else -1: of what is counted where these are different
            values, of all that is counted where there are several (see `aggregate.several`); of rows that are told as
            they are their partner's.
        value: float64[n], the aggregate's argument, NaN for null; of rows that are told as they are their value.
        fields: string[n], the selected columns of rows that are told as they are.
    """

    LAYOUT: ClassVar[Layout] = Layout(
        name="outer_rows",
        numbers={
            "target": (Numbers.TARGETS,),
            "group": (Numbers.PARTNERS,),
            "text": (Numbers.PARTNERS,),
        },
        order=("target",),
        identity=("target",),
    )

    target: np.ndarray = field(default_factory=no_numbers)
    group: np.ndarray = field(default_factory=no_numbers)
    text: np.ndarray = field(default_factory=no_numbers)
    value: np.ndarray = field(default_factory=lambda: np.empty(0))
    fields: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))


@dataclass(frozen=True, slots=True, kw_only=True)
class OuterGroups(Groups):
    """The groups of rows with the value of each as it was told last, sorted by target; see `aggregate.groups`."""

    LAYOUT: ClassVar[Layout] = replace(Groups.LAYOUT, name="outer_groups")

    @classmethod
    def of(cls, groups: Groups) -> "OuterGroups":
        """Groups of members or rows as those of rows."""
        return cls(target=groups.target, value=groups.value, text=groups.text)


def behind(parts: Sequence[OuterRows]) -> OuterRows:
    """The rows of all parts, one part behind the other, in no other order."""
    some = [OuterRows(), *parts]
    return OuterRows(
        **{
            name: np.concatenate([getattr(part, name) for part in some])
            for name in OuterRows.columns()
            if name != "fields"
        },
        fields=pa.concat_arrays([part.fields for part in some]),
    )
