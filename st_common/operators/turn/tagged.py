"""Tags of the features of pairs, and how far these are: from the version of the layer that their query has."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from st_common.operators.expressions.feature_readings import tag_values
from st_common.operators.matching.layer import Layer
from st_common.operators.state.registered import Queries
from st_common.operators.state.targets import NO_PARTNER
from st_common.operators.turn.turn import Turn
from st_common.query.pair_columns import of_feature

_TYPES = {"VARCHAR": pa.string(), "DOUBLE": pa.float64()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged:
    """The tags of the features of n pairs, of each different feature once.

    Attributes:
        row: int64[n], the row of each pair in the table.
        table: a column for each tag, named as in `pair_columns`. The last row is of what has no feature: all is null.
    """

    row: np.ndarray
    table: pa.Table

    def columns(self) -> dict[str, pa.Array]:
        """The tags of each pair, by name; n values each."""
        at, table = pa.array(self.row), self.table
        return {name: table[name].take(at) for name in table.column_names}


def versions_of(queries: Queries, query: np.ndarray) -> np.ndarray:
    """The versions of the layers that some queries (int64[n]) join; int64[n], -1 for none, and where none is known."""
    numbers, at = np.unique(query, return_inverse=True)
    known = numbers[numbers < len(queries)]
    versions = [queries[number].layer_version for number in known]
    versions += [None] * (len(numbers) - len(known))
    out = [-1 if version is None else version for version in versions]
    return np.array(out, np.int64)[at]


def tagged(
    turn: Turn,
    names: Iterable[str],
    *,
    query: np.ndarray,
    target: np.ndarray,
    version: np.ndarray,
) -> Tagged:
    """The tags of the features of some pairs.

    Args:
        turn: the run.
        names: the columns of features that are asked for.
        query: int64[n], the query of each pair, which joins a layer.
        target: int64[n]; its partner is the feature.
        version: int64[n], the version of the layer, -1 for none.

    Raises:
        LayerError: a tag cannot be read.
    """
    types = dict(of_feature(names))
    partner = turn.numbering.targets.partner[target]
    row, parts, rows = np.full(len(query), -1), [], 0
    for layer, mine in _by_layer(turn, query, target, version):
        different, which = np.unique(partner[mine], return_inverse=True)
        parts.append(_tags(layer, _places(turn, layer, different), types))
        row[mine] = rows + which
        rows += len(different)
    parts.append({name: pa.nulls(1, _TYPES[kind]) for name, kind in types.items()})
    columns = {name: pa.concat_arrays([part[name] for part in parts]) for name in types}
    return Tagged(row=np.where(row < 0, rows, row), table=pa.table(columns))


def distances_of(
    turn: Turn,
    x: np.ndarray,
    y: np.ndarray,
    *,
    query: np.ndarray,
    target: np.ndarray,
    version: np.ndarray,
    to_border: bool = False,
) -> np.ndarray:
    """How far places are from the features of some pairs; float64[n], NaN where there is no feature.

    Args:
        turn: the run.
        x: float64[n], the place of each pair's fix; `y` likewise.
        y: see `x`.
        query: see `tagged`.
        target: likewise.
        version: likewise.
        to_border: how far from their outlines, from inside of areas too.
    """
    far = np.full(len(query), np.nan)
    for layer, rows, feature in _with_features(turn, query, target, version):
        far[rows] = layer.distances(x[rows], y[rows], feature, to_border=to_border)
    return far


def nearest_of(
    turn: Turn,
    x: np.ndarray,
    y: np.ndarray,
    *,
    query: np.ndarray,
    target: np.ndarray,
    version: np.ndarray,
) -> np.ndarray:
    """The places of features that are nearest to the fixes of some pairs; float64[2, n], NaN without a feature.

    Args:
        turn: see `distances_of`; so are all others.
        x: float64[n].
        y: float64[n].
        query: int64[n].
        target: int64[n].
        version: int64[n].
    """
    places = np.full((2, len(query)), np.nan)
    for layer, rows, feature in _with_features(turn, query, target, version):
        places[:, rows] = layer.nearest(x[rows], y[rows], feature)
    return places


def _with_features(
    turn: Turn, query: np.ndarray, target: np.ndarray, version: np.ndarray
) -> Iterator[tuple[Layer, np.ndarray, np.ndarray]]:
    """The versions of layers of some pairs, with the places of pairs that have a feature there, and these features."""
    partner = turn.numbering.targets.partner[target]
    for layer, mine in _by_layer(turn, query, target, version):
        different, which = np.unique(partner[mine], return_inverse=True)
        places, is_there = _found(turn, layer, different)
        known = np.flatnonzero(is_there[which])
        yield layer, mine[known], places[which[known]]


def _by_layer(
    turn: Turn, query: np.ndarray, target: np.ndarray, version: np.ndarray
) -> Iterator[tuple[Layer, np.ndarray]]:
    """The versions of layers whose features some pairs have, with the places of these pairs; see `tagged`."""
    partner = turn.numbering.targets.partner[target]
    has_feature = (partner != NO_PARTNER) & (version >= 0)
    numbers, at = np.unique(query, return_inverse=True)
    joins = [turn.queries[number].plan.join for number in numbers]
    layers = [None if join is None else join.layer for join in joins]
    for name in dict.fromkeys(layers):
        is_mine = np.array([one == name for one in layers])[at] & has_feature
        for one in np.unique(version[is_mine]) if name is not None else ():
            mine = np.flatnonzero(is_mine & (version == one))
            yield turn.layer_of(name or "", int(one)), mine


def _places(turn: Turn, layer: Layer, partner: np.ndarray) -> pa.Array:
    """The places in a layer of the features that partners are; null of one that the layer has not."""
    places, is_there = _found(turn, layer, partner)
    return pa.array(places, pa.int64(), mask=~is_there)


def _found(
    turn: Turn, layer: Layer, partner: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The places in a layer of the features that partners (int64[n]) are, and whether each is there."""
    ids = turn.numbering.partners.ids.take(pa.array(partner))
    wanted = ids.to_numpy(zero_copy_only=False)
    places = np.searchsorted(layer.fids, wanted)
    places = np.minimum(places, max(len(layer.fids) - 1, 0))
    is_there = np.zeros(len(wanted), bool)
    if len(layer.fids):
        is_there = layer.fids[places] == wanted
    return places, is_there


def _tags(layer: Layer, at: pa.Array, types: dict[str, str]) -> dict[str, pa.Array]:
    """The tags of features by their places in a layer; null where a place is."""
    return {
        name: tag_values(layer.values, name, at).cast(_TYPES[kind])
        for name, kind in types.items()
    }
