"""Which changes of CQL's streams leave the system: what came, what went, or all that is there (SPEC W6).

The table `changes` keeps every + and -, so that answers can be folded from it. Whoever passes changes on - `fairway
changes`, deliveries, another stream's log - passes of an ISTREAM query only +, of a DSTREAM query only -, of an RSTREAM
query + and 0. The version of the plan that made a change decides, so a query that is replaced changes its stream there.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from st_common.config.home import Home
from st_common.controls.reading import chosen
from st_common.controls.rectangles import Rectangles
from st_common.controls.rows import ControlRow, Registration
from st_common.log.control import control_rows
from st_common.log.log import Log

PASSED: Mapping[str, Sequence[int]] = {
    "istream": (1,),
    "dstream": (-1,),
    "rstream": (1, 0),
}


class Outlet:
    """Lets through those of a stream's changes that the streams of its queries give (SPEC W6).

        the query says   passed
        ISTREAM          +
        DSTREAM          -
        RSTREAM          + and 0
        none of them     all

    Args:
        home: the home folder.
        stream: the stream, whose log says which version of which query gives what.
    """

    def __init__(self, home: Home, stream: str) -> None:
        self._log = Log(home.log(stream))
        self._read = 0  # segments
        self._keys: dict[str, list[str]] = {emit: [] for emit in PASSED}
        self._sets: dict[str, pa.Array] = {}

    def passed(self, rows: pa.Table) -> pa.Table:
        """The changes without those that their query's stream does not have; queries without a stream pass all.

        Args:
            rows: changes of the stream, with `query`, `query_version` and `sign`; their order stays.
        """
        if not len(rows) or not self._learned():
            return rows
        made = _made(rows)
        for emit, signs in PASSED.items():
            of_it = pc.is_in(made, value_set=self._sets[emit])
            passes = pc.or_(pc.invert(of_it), _has(rows, signs))
            rows, made = rows.filter(passes), made.filter(passes)
        return rows

    def _learned(self) -> bool:
        """Whether any query gives a stream; what was registered since the last time is read.

        A version stands in the log before its first change, so whoever has a change finds its version.
        """
        end = self._log.end()
        if end > self._read:
            for segment in self._log.control_segments(self._read):
                self._note(control_rows(self._log, segment))
            self._sets = {
                emit: pa.array(keys, pa.string()) for emit, keys in self._keys.items()
            }
            self._read = end
        return any(self._keys.values())

    def _note(self, rows: Sequence[ControlRow]) -> None:
        if isinstance(rows, Rectangles):
            return  # such a query gives all of its changes
        for _, row in chosen(rows, Registration):
            emit = row.plan.get("emit")
            if emit in self._keys:
                self._keys[emit].append(f"{row.version}/{row.query}")


def _made(rows: pa.Table) -> Any:
    """The version and the name of the query that made each change, as one text."""
    return pc.binary_join_element_wise(
        rows["query_version"].cast(pa.string()), rows["query"], "/"
    )


def _has(rows: pa.Table, signs: Sequence[int]) -> Any:
    return pc.is_in(rows["sign"], value_set=pa.array(signs, rows["sign"].type))
