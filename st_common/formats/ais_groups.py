r"""Tag groups of NMEA sentences: lines that belong together, of which often only the first says when and by whom.

    \g:1-2-1234,s:st1,c:1700000000*4A\$ARVSI,..      line 1 of 2 of group 1234: the time and the station
    \g:2-2-1234*59\!AIVDM,1,1,,A,15RT..              line 2: has those of line 1

Also as some write it: `\1G2:1234,c:1700000000*..\`. Two stations may count their groups alike: where it is open whose
line 2 it is, it has no line 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.formats.nmea_sums import has_sum
from st_common.formats.numbers import long_values, mask
from st_common.formats.spans import Ints, Mask

MOST_BETWEEN = 256  # sentences between two lines of a group
_HINTS = (b"g:", b"G")
_BLOCK = r"^[^!$\\]*\\(?P<tags>[^\\*]*)\*(?P<sum>[0-9A-Fa-f]{2})\\"
_GROUP = (
    r"(?:^|,)g:(?P<line>[1-9][0-9]?)-(?P<lines>[1-9][0-9]?)-(?P<id>[0-9A-Za-z]+)(?:,|$)"
)
_OTHER_GROUP = r"(?:^|,)(?P<line>[1-9])G(?P<lines>[1-9]):(?P<id>[0-9A-Za-z]+)(?:,|$)"
_STATION = r"(?:^|,)s:(?P<station>[^,*]+)(?:,|$)"


@dataclass(frozen=True, slots=True)
class _Grouped:
    """The lines of tag groups: ordered by group, in a group as they came.

    `rows` are the lines, `code` says which group, `line` of how many `lines` each is.
    """

    rows: Ints
    code: Ints
    line: Ints
    lines: Ints
    at: Ints
    ids: pa.Array
    tags: pa.Array


def heads_of(texts: pa.Array, at: Ints) -> tuple[pa.Array, pa.Array]:
    """Of each line the tag group that it is of, and the tag block of that group's first line; else empty.

    Args:
        texts: lines.
        at: how many sentences stand in front of each.
    """
    groups, heads = (_Column(len(texts)) for _ in range(2))
    grouped = _grouped(texts, at)
    if grouped is not None:
        groups.put(grouped.rows, grouped.ids)
        head = _first_lines(grouped)
        with_one = head >= 0
        tags = grouped.tags.take(pa.array(head[with_one]))
        heads.put(grouped.rows[with_one], tags)
    return groups.values(), heads.values()


def awaited(texts: pa.Array, at: Ints) -> Mapping[int, bytes]:
    """The tag blocks of lines whose groups may go on behind all of them, by line.

    Args:
        texts: lines.
        at: how many sentences stand in front of each.
    """
    grouped = _grouped(texts, at)
    if grouped is None:
        return {}
    ended = np.where(grouped.line == grouped.lines, np.arange(len(grouped.rows)), -1)
    latest = np.full(int(grouped.code.max()) + 1, -1)
    np.maximum.at(latest, grouped.code, ended)
    is_open = np.arange(len(grouped.rows)) > latest[grouped.code]
    rows = grouped.rows[is_open]
    blocks = pc.replace_substring_regex(
        texts.take(pa.array(rows)), rf"{_BLOCK}(?s:.*)", r"\\\1*\2\\"
    )
    return dict(zip(rows.tolist(), blocks.to_pylist(), strict=True))


def _grouped(texts: pa.Array, at: Ints) -> _Grouped | None:
    """The lines of groups; None where there are none, which is seen at a glance."""
    if not _may_have_groups(texts):
        return None
    blocks = pc.extract_regex(texts, _BLOCK)
    tags = pc.struct_field(blocks, "tags")
    said, other = (pc.extract_regex(tags, each) for each in (_GROUP, _OTHER_GROUP))
    line, lines, ids = (
        pc.coalesce(pc.struct_field(said, name), pc.struct_field(other, name))
        for name in ("line", "lines", "id")
    )
    rows = np.flatnonzero(mask(ids.is_valid()))
    sums = blocks.field("sum").take(pa.array(rows))
    rows = rows[has_sum(tags.take(pa.array(rows)), sums)]
    if not len(rows):
        return None
    taken = pa.array(rows)
    keys = pc.binary_join_element_wise(lines.take(taken), ids.take(taken), b"-")
    code = keys.dictionary_encode().indices.to_numpy().astype(np.int64)
    order = np.argsort(code, kind="stable")
    rows, taken = rows[order], pa.array(rows[order])
    return _Grouped(
        rows=rows,
        code=code[order],
        line=_numbers(line.take(taken)),
        lines=_numbers(lines.take(taken)),
        at=at[rows],
        ids=keys.take(pa.array(order)),
        tags=tags.take(taken),
    )


def _may_have_groups(texts: pa.Array) -> bool:
    _, _, data = texts.buffers()
    held = b"" if data is None else data.to_pybytes()
    return b"\\" in held and any(hint in held for hint in _HINTS)


def _first_lines(grouped: _Grouped) -> Ints:
    """Of each line of a group the place of its first one; -1 of that itself, and where it is open which is meant."""
    places = np.arange(len(grouped.rows))
    near = np.zeros(len(places), bool)
    near[1:] = grouped.code[1:] == grouped.code[:-1]
    near[1:] &= grouped.at[1:] - grouped.at[:-1] <= MOST_BETWEEN
    follows = near.copy()
    follows[1:] &= grouped.line[1:] == grouped.line[:-1] + 1
    start = np.maximum.accumulate(np.where(follows, 0, places))
    begun_before = near.copy()
    begun_before[1:] &= grouped.line[:-1] < grouped.lines[:-1]
    begun_before &= ~_of_one_station(grouped)
    sure = (grouped.line == 1) & ~begun_before
    return np.where(sure[start] & (start != places), start, -1)


def _of_one_station(grouped: _Grouped) -> Mask:
    """Which lines name the same station as the line in front of them: then that one's group was given up."""
    said = pc.struct_field(pc.extract_regex(grouped.tags, _STATION), "station")
    same = np.zeros(len(grouped.rows), bool)
    same[1:] = mask(pc.equal(said[1:], said[:-1]))
    return same


def _numbers(texts: pa.Array) -> Ints:
    return long_values(texts.cast(pa.string()).cast(pa.int64()))


class _Column:
    """A column of bytes of which few are not empty."""

    def __init__(self, count: int) -> None:
        self._from = np.zeros(count, np.int64)
        self._pieces = [pa.array([b""], pa.binary())]

    def put(self, rows: Ints, values: pa.Array) -> None:
        """Puts values into rows."""
        known = sum(map(len, self._pieces))
        self._from[rows] = known + np.arange(len(rows))
        self._pieces.append(values.cast(pa.binary()))

    def values(self) -> pa.Array:
        """All of them."""
        return pa.concat_arrays(self._pieces).take(pa.array(self._from))
