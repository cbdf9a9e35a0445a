"""What the features of a layer are called: their ids, kinds and tags, and which of them have some of these."""

from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from st_common.layers.grouped import groups_of, rank_in_group
from st_common.layers.keyed import KeyIndex
from st_common.layers.readable import readable

Ints = npt.NDArray[np.int64]
Tags = Sequence[tuple[str, str]]
Chosen = tuple[tuple[str, ...], tuple[tuple[str, str], ...]]
"""Kinds and tags of features, each sorted."""
ROW_COLUMNS = ("fid", "kind", "tags", "geometry")
_ROW_BYTES = 256 << 20


def chosen_by(kinds: Sequence[str], tags: Tags) -> Chosen:
    """Kinds and tags, so that equal ones are equal: sorted, each once."""
    return tuple(sorted(set(kinds))), tuple(sorted(set(tags)))


class Labels:
    """The ids, kinds and tags of features.

    Args:
        rows: a row for each feature with its fid and kind, sorted by fid.
        read_tag: gives the values of a tag of all features, in the same order; null for none. None: they have no tags.
    """

    __slots__ = ("_keyed", "_kind", "_read_tag", "_values", "fids")

    def __init__(
        self, rows: pa.Table, read_tag: Callable[[str], pa.Array] | None = None
    ) -> None:
        self.fids: npt.NDArray[np.object_] = (
            rows["fid"].to_numpy(zero_copy_only=False).astype(object)
        )
        self._kind = rows["kind"].to_numpy(zero_copy_only=False)
        self._read_tag = read_tag
        self._keyed: dict[str, KeyIndex] = {}
        self._values: dict[str, pa.Array] = {}

    def keyed(
        self, values: pa.Array, column: str, *, chosen: Chosen = ((), ())
    ) -> tuple[Ints, Ints]:
        """All pairs of a value and a feature whose `column` is equal to it, as text; see `LayerIndex.keyed`."""
        if column not in self._keyed:
            self._keyed[column] = KeyIndex.of(self.values(column))
        value, feature = self._keyed[column].find(values)
        if any(chosen):
            meant = self.meant(chosen)[feature]
            value, feature = value[meant], feature[meant]
        return value, feature

    def values(self, column: str) -> pa.Array:
        """The fid, the kind or a tag (by name) of every feature, string[n]; null for none. Read once and kept."""
        if column not in self._values:
            self._values[column] = self._column(column)
        return self._values[column]

    def meant(self, chosen: Chosen) -> npt.NDArray[np.bool_]:
        """Which features are of these kinds and have all of these tags; bool[n]."""
        kinds, tags = chosen
        meant: npt.NDArray[np.bool_] = (
            np.isin(self._kind, kinds) if kinds else np.ones(len(self.fids), np.bool_)
        )
        for name, value in tags:
            has = pc.fill_null(pc.equal(self.values(name), value), fill_value=False)
            meant &= has.to_numpy(zero_copy_only=False)
        return meant

    def _column(self, name: str) -> pa.Array:
        if name in ("fid", "kind"):
            return pa.array(self.fids if name == "fid" else self._kind, pa.string())
        if self._read_tag is None:
            return pa.nulls(len(self.fids), pa.string())
        with readable():
            return self._read_tag(name)


class FeatureRows:
    """Whole features, with all tags and their geometry, read region by region on demand.

    Args:
        region: int64[features], the region in which each feature is at home, a place in `region_ids`.
        region_ids: the regions.
        read: gives the `ROW_COLUMNS` of the features that are home in a region, in the order of their fids.
    """

    __slots__ = ("_ids", "_local", "_read", "_region", "_tables")

    def __init__(
        self,
        region: Ints,
        region_ids: Sequence[str],
        read: Callable[[str], pa.Table],
    ) -> None:
        self._region, self._ids, self._read = region, region_ids, read
        self._local = rank_in_group(region)
        self._tables: OrderedDict[str, pa.Table] = OrderedDict()

    def of(self, feature: Ints) -> pa.Table:
        """A row with the `ROW_COLUMNS` for each of m features (int64[m], m > 0): tags as a map, the geometry as WKB.

        Raises:
            LayerError: a region cannot be read.
            TransientError: it cannot be read now.
        """
        groups = groups_of(self._region[feature])
        parts = [
            self._table(region).take(pa.array(self._local[feature[pairs]]))
            for region, pairs in groups
        ]
        back = np.argsort(np.concatenate([pairs for _, pairs in groups]))
        return pa.concat_tables(parts).take(pa.array(back))

    def _table(self, region: int) -> pa.Table:
        name = self._ids[region]
        if name in self._tables:
            self._tables.move_to_end(name)
            return self._tables[name]
        with readable():
            table = self._tables[name] = self._read(name)
        held = sum(one.nbytes for one in self._tables.values())
        while held > _ROW_BYTES and len(self._tables) > 1:
            held -= self._tables.popitem(last=False)[1].nbytes
        return table
