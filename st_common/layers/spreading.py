"""Layers go over to the newest regions of their group: the same features, spread anew."""

from dataclasses import dataclass

from st_common import tables
from st_common.config.home import Home
from st_common.layers.announce import layer_group, loaded_layers, spread_by
from st_common.layers.rows import features_in, layer_rows
from st_common.layers.table import AT_HOME, read_rows, replace_rows, table_path
from st_common.partitioning.groups import require_layer_in
from st_common.partitioning.store import current

_NO_GROUP = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """What became of the layers.

    Attributes:
        versions: of each layer that was spread anew, the new Delta version of its table.
        kept: layers that are spread over the newest regions of their group already.
        unknown: layers that were loaded before their tables said which group they belong to: load them again.
    """

    versions: dict[str, int]
    kept: list[str]
    unknown: list[str]


def spread_layers(home: Home) -> Spread:
    """Spreads every layer over the newest regions of its group that is not yet; each in one commit.

    Features stay as they are, so answers do too. No stream is told: `announce` does that. Repeated, or after one that
    died, it does what is left.

    Raises:
        LayerError: the regions of a layer's group have other than two dimensions.
    """
    done = Spread(versions={}, kept=[], unknown=[])
    for layer in loaded_layers(home):
        before, after = _spread_layer(home, layer)
        if before is _NO_GROUP:
            done.unknown.append(layer)
        elif after is None:
            done.kept.append(layer)
        else:
            done.versions[layer] = after
    return done


def layers_of(home: Home, group: str) -> list[str]:
    """The layers that are spread over the regions of a group, by name."""
    return [name for name in loaded_layers(home) if layer_group(home, name) == group]


def _spread_layer(home: Home, layer: str) -> tuple[str | None, int | None]:
    """A layer's group, None when its table does not say; and its new version, None when it stays as it is."""
    path = table_path(home, layer)
    with tables.locked(path):  # a load that comes meanwhile waits, and is not undone
        group, version = spread_by(home, layer)
        if group is None:
            return _NO_GROUP, None
        regions = current(home, group)
        if regions.version == version:
            return group, None
        require_layer_in(regions, layer)
        rows = read_rows(home, layer, filters=AT_HOME)
        source = rows["attribution"][0].as_py() if len(rows) else None
        features = features_in(rows.sort_by("fid"))
        spread = layer_rows(features, regions, attribution=source)
        return group, replace_rows(path, spread)
