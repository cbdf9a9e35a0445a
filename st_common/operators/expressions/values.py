"""What expressions say of the last fixes at the ticks of a run: evaluated once for each fix, not at every tick.

An expression is a column over the places of fixes, filled where somebody asks: ticks ask for the same fixes again
and again, for most objects do not report between two of them.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.geometry.space import Space
from st_common.operators.expressions import evaluation as expressions
from st_common.operators.expressions.readings import Readings
from st_common.operators.state.fixes import READING
from st_common.operators.state.intern import Interner
from st_common.operators.state.numbering import Numbering
from st_common.operators.state.taken import Attributes, taken

Form = Literal["mask", "number", "text", "group", "known"]
_FILLER = {"mask": False, "known": False, "number": np.nan, "text": -1, "group": -1}
_MOST_KEPT = 1 << 24  # truth values that a run remembers, each with whether it is known
_SHARE = (
    8  # where more than this part of the events is asked for, all are evaluated at once
)


class _Column:
    """The values of one expression at all places, as far as they are known; the last place is for none: it is null."""

    def __init__(self, form: Form, places: int) -> None:
        self.values = np.full(places + 1, _FILLER[form])
        self.known = np.zeros(places + 1, bool)
        self.known[-1] = True
        self.asked = False
        self.names = pa.array(
            [], pa.string()
        )  # of texts, whose values are places among these
        self._partners = np.empty(
            0, np.int64
        )  # their numbers as partners, -1 as long as nobody asked

    def put(self, places: np.ndarray, values: pa.Array | np.ndarray) -> None:
        self.values[places] = (
            self._codes(values) if isinstance(values, pa.Array) else values
        )
        self.known[places] = True

    def numbered(self, codes: np.ndarray, numbering: Numbering) -> np.ndarray:
        """The numbers, as partners, of some texts by their codes; any number for null."""
        self._partners = np.append(
            self._partners, np.full(len(self.names) - len(self._partners), -1)
        )
        used = np.unique(codes[codes >= 0])
        new = used[self._partners[used] < 0]
        if len(new):
            self._partners[new] = numbering.partners_of(self.names.take(pa.array(new)))
        numbers: np.ndarray = np.append(self._partners, -1)[codes]
        return numbers

    def _codes(self, texts: pa.Array) -> np.ndarray:
        """The numbers of some texts among `names`, -1 for null; new ones are put behind the others."""
        encoded = texts.cast(pa.string()).dictionary_encode()
        at = (
            pc.index_in(encoded.dictionary, value_set=self.names)
            .to_numpy(zero_copy_only=False)
            .astype(float)
        )
        new = np.isnan(at)
        at[new] = len(self.names) + np.arange(int(new.sum()))
        self.names = pa.concat_arrays(
            [self.names, encoded.dictionary.filter(pa.array(new))]
        )
        numbers = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        codes: np.ndarray = np.append(at, -1).astype(np.int64)[numbers]
        return codes


class Values:
    """Expressions over fixes at places, each evaluated once for a fix.

        place      0 .. k - 1                     k .. k + e - 1                   -1
        fix        last fixes before the run      those after each of its events   none: null

    What is asked for a second time is evaluated for all events at once: then other ticks will ask as well.

    Args:
        before: the last fixes of k objects before the run.
        after: the reading of its object after each of e events.
        attributes: of both, at all places.
        objects: the ids of objects.
        space: by which distances and speeds are measured.

    Attributes:
        places: k + e.
        columns: for what others know of the columns at the places of the run.
    """

    def __init__(
        self,
        before: Readings,
        after: Readings,
        attributes: Attributes,
        objects: Interner,
        *,
        space: Space,
    ) -> None:
        self._parts, self.attributes = (before, after), attributes
        self._objects, self._space = objects, space
        self._known, self.places = len(before), len(before) + len(after)
        self.columns: dict[int, Any] = {}
        self._columns: dict[tuple[Form, str], _Column] = {}
        self._spent_us: dict[str, float] = {}

    def readings(self, places: np.ndarray) -> Readings:
        """The fixes at some places; what stands nowhere (-1) is any fix."""
        columns = {
            name: np.concatenate([getattr(part, name) for part in self._parts])[places]
            for name in ("object", *READING)
        }
        return Readings(**columns, attributes=taken(self.attributes, places))

    def masks(
        self, texts: Sequence[str], places: np.ndarray, *, among: int
    ) -> np.ndarray:
        """Where each expression is true of the fixes at some places; bool[e, n], null counts as false.

        Args:
            texts: e expressions.
            places: int64[n].
            among: how many expressions are asked for one after the other in all: of very many none is remembered.
        """
        if among * self.places > _MOST_KEPT:
            return self._masks_once(texts, places)
        columns = self._filled("mask", texts, places)
        return (
            np.stack([column.values[places] for column in columns])
            if columns
            else np.empty((0, len(places)), bool)
        )

    def spent_us(self, among: int) -> dict[str, float]:
        """Microseconds that the run has spent on pairs, by shape (see `general`); of what is not remembered none."""
        return self._spent_us if among * self.places <= _MOST_KEPT else {}

    def _masks_once(self, texts: Sequence[str], places: np.ndarray) -> np.ndarray:
        """Where expressions are true at places, without remembering it."""
        out = np.zeros((len(texts), len(places)), bool)
        for start, end, part in zip(
            (0, self._known), (self._known, self.places), self._parts, strict=True
        ):
            which = np.flatnonzero((places >= start) & (places < end))
            if len(which):
                out[:, which] = expressions.masks(
                    texts, self._table(part, places[which], start, texts)
                )
        return out

    def _table(
        self, part: Readings, places: np.ndarray, first: int, texts: Sequence[str]
    ) -> pa.Table:
        """The fixes at some places of a part, whose first place is given, as these expressions see them."""
        readings = replace(
            part.take(places - first), attributes=taken(self.attributes, places)
        )
        return readings.table(self._objects.ids, space=self._space, texts=texts)

    def numbers(self, text: str, places: np.ndarray) -> np.ndarray:
        """The values of an expression at places (int64[n]) as float64[n], NaN for null."""
        values: np.ndarray = self._filled("number", [text], places)[0].values[places]
        return values

    def known(self, text: str, places: np.ndarray) -> np.ndarray:
        """Where an expression is not null; bool[n]."""
        values: np.ndarray = self._filled("known", [text], places)[0].values[places]
        return values

    def texts(self, text: str, places: np.ndarray) -> tuple[np.ndarray, pa.Array]:
        """The values of an expression at places (int64[n]) as texts.

        Returns:
            int64[n], their numbers, -1 for null; and the texts that these count in, which only grow in a run.
        """
        (column,) = self._filled("text", [text], places)
        return column.values[places], column.names

    def partners(
        self,
        text: str,
        places: np.ndarray,
        numbering: Numbering,
        *,
        null: str,
        form: Form = "text",
    ) -> np.ndarray:
        """The values of an expression as numbers of partners; int64[n].

        Args:
            text: the expression.
            places: int64[n].
            numbering: gives numbers; a text that was never a partner gets one.
            null: the text that stands for fixes without a value.
            form: `text`, or `group` for names of groups.
        """
        (column,) = self._filled(form, [text], places)
        codes = column.values[places]
        if (codes < 0).any():
            return np.where(
                codes < 0, numbering.partner_of(null), column.numbered(codes, numbering)
            )
        return column.numbered(codes, numbering)

    def _filled(
        self, form: Form, texts: Sequence[str], places: np.ndarray
    ) -> list[_Column]:
        """The columns of some expressions, known at these places."""
        for text in texts:
            if (form, text) not in self._columns:
                self._columns[form, text] = _Column(form, self.places)
        columns = {text: self._columns[form, text] for text in texts}
        lacking = [
            text for text, column in columns.items() if not column.known[places].all()
        ]
        if lacking:
            self._evaluate(form, {text: columns[text] for text in lacking}, places)
        return list(columns.values())

    def _evaluate(
        self, form: Form, columns: dict[str, _Column], places: np.ndarray
    ) -> None:
        unknown = np.zeros(self.places + 1, bool)
        for column in columns.values():
            unknown[places] |= ~column.known[places]
        events = int(np.count_nonzero(unknown[self._known :]))
        if events and (
            events * _SHARE > self.places - self._known
            or any(c.asked for c in columns.values())
        ):
            # Asked of many events, or not for the first time: other ticks will ask as well.
            unknown[self._known : -1] = True
        for column in columns.values():
            column.asked |= events > 0
        wanted = np.flatnonzero(unknown)
        start = np.searchsorted(wanted, self._known)
        for part, at in zip(self._parts, (wanted[:start], wanted[start:]), strict=True):
            if len(at):
                first = 0 if part is self._parts[0] else self._known
                texts = list(columns)
                table = self._table(part, at, first, texts)
                for column, values in zip(
                    columns.values(), _found(form, texts, table), strict=True
                ):
                    column.put(at, values)


def _found(
    form: Form, texts: list[str], table: pa.Table
) -> Sequence[pa.Array | np.ndarray]:
    if form == "mask":
        return list(expressions.masks(texts, table))
    if form == "known":
        return list(expressions.known(texts, table))
    if form == "group":
        return expressions.groups(texts, table)
    return (
        expressions.numbers(texts, table)
        if form == "number"
        else expressions.values_as_text(texts, table)
    )
