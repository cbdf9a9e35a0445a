"""Cases whose layer is put to, row by row, while the stream runs."""

from dataclasses import replace
from random import Random

from st_common.controls.rows import LayerVersion
from tests.kit.control_rows import control
from tests.kit.oracle import Feature
from tests.kit.strategies import LAYER, Case, draw_features

MOST_VERSIONS = 8


def with_puts(case: Case, rng: Random) -> Case:
    """The case, whose layer has a few other features from some rows on, version by version.

    Args:
        case: with one version of its layer, 0.
        rng: draws after which rows the layer changes, and what it holds from there on.
    """
    layers, rows = dict(case.layers), []
    version = 0
    for row in case.rows:
        rows.append(row)
        if version + 1 < MOST_VERSIONS and rng.random() < 0.2:
            version += 1
            layers[LAYER, version] = _patched(rng, list(layers[LAYER, version - 1]))
            rows.append(control(LayerVersion(layer=LAYER, version=version), 0))
    rows = [replace(row, position=at) for at, row in enumerate(rows)]
    return replace(case, rows=tuple(rows), layers=layers)


def _patched(rng: Random, before: list[Feature]) -> list[Feature]:
    """The features with some taken out, some in place of others, and some more."""
    drawn = {one.fid: one for one in draw_features(rng)}
    kept = [one for one in before if rng.random() < 0.7]
    kept = [drawn.get(one.fid, one) if rng.random() < 0.2 else one for one in kept]
    there = {one.fid for one in kept}
    return kept + [
        one for fid, one in drawn.items() if fid not in there and rng.random() < 0.3
    ]
