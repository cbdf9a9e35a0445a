"""The layers of a task that stays: small ones whole, large ones spread over the tasks (docs/adr/0084)."""

from functools import lru_cache

from st_common.home import Home
from st_common.layers.stored import index_bytes, load_index, load_outline
from st_common.operators.matching.layer import Layer, LayerOf
from st_common.settings import StreamSettings
from st_common.spark.peers import Peers
from st_common.spark.spread_layer import SpreadLayer

_LAYERS_HELD = 16
_MB = 1 << 20


def shared_layers(home: Home, stream: StreamSettings, peers: Peers) -> LayerOf:
    """What gives a task the layers of a home folder, in the space of a stream.

    Args:
        home: where the tables of layers lie.
        stream: its settings say how large an index may be that each task has whole.
        peers: the tasks.

    Returns:
        `layer_of(layer, version)`, as `step` takes it.
    """
    most_bytes, space = stream.spark.spread_layers_mb * _MB, stream.space

    @lru_cache(maxsize=_LAYERS_HELD)
    def layer_of(layer: str, version: int) -> Layer:
        is_large = index_bytes(home, layer, version) > most_bytes
        outline = load_outline(home, layer, version) if is_large else None
        if outline is None:
            return load_index(home, layer, version, space=space)
        return SpreadLayer(layer, version, outline, peers, space=space)

    return layer_of
