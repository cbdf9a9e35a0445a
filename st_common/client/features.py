"""Features of a layer by their ids, for who wants to know more of a join's partner than its id."""

from collections import OrderedDict
from collections.abc import Mapping

import pyarrow as pa

from st_common.config.home import Home
from st_common.layers.table import AT_HOME, read_rows
from st_common.query.tuples import Feature

_HELD = 100_000  # features


class FeatureCache:
    """The features of a layer by their ids, read once for many rows; every version of the layer has its own features.

    Args:
        home: where the layer's table lies.
        layer: the layer.
    """

    def __init__(self, home: Home, layer: str) -> None:
        self._home, self._layer = home, layer
        self._version: int | None = None
        self._known: OrderedDict[str, Feature] = OrderedDict()

    def of(self, rows: pa.Table) -> Mapping[str, Feature]:
        """The features that some changes are about, by fid, as the newest of their layer versions has them.

        Args:
            rows: changes, with `layer_version` and `partner`; null where a change is about no feature.

        Returns:
            At least those of `rows` that the layer has; valid until the next call.
        """
        version = max(
            (each for each in rows["layer_version"].to_pylist() if each is not None),
            default=None,
        )
        if version != self._version:
            self._known.clear()
            self._version = version
        missing = {
            fid for fid in rows["partner"].to_pylist() if fid is not None
        } - self._known.keys()
        if missing and version is not None:
            self._read(sorted(missing), version)
        while len(self._known) > _HELD + len(rows):
            self._known.popitem(last=False)
        return self._known

    def _read(self, fids: list[str], version: int) -> None:
        table = read_rows(
            self._home,
            self._layer,
            version,
            columns=["fid", "kind", "tags"],
            filters=[("fid", "in", fids), *AT_HOME],
        )
        for row in table.to_pylist():
            feature = Feature(
                fid=row["fid"],
                layer=self._layer,
                kind=row["kind"],
                tags=dict(row["tags"] or ()),
            )
            self._known[row["fid"]] = feature
