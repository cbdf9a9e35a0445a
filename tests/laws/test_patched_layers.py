"""The laws of versions of a layer that are made from others: nothing tells them from those that are read as a whole."""

from random import Random

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from st_common.geometry.borders import Segments
from st_common.geometry.enlarged import Growth
from st_common.geometry.space import PLANE
from st_common.layers import patched as patching
from st_common.layers.patched import patched
from st_common.layers.rows import layer_rows
from tests.kit.effort import tries
from tests.kit.layer_tables import HALVES, features_of, index_of
from tests.kit.oracle import Feature
from tests.kit.shapely_layer import ShapelyLayer

FIDS = [a + b for a in "ace" for b in "bdf"]
KINDS, SIZES = ("park", "road"), ("2", "3")


def drawn_feature(rng, fid):
    x, y, side = rng.randint(-6, 6), rng.randint(-6, 6), rng.choice((1, 2, 4))
    square = shapely.box(x, y, x + side, y + side)
    line = shapely.LineString([(x, y), (x + side, y), (x + side, y + side)])
    shape = rng.choice((square, line, shapely.Point(x, y)))
    tags = rng.choice(({}, {"size": "2"}, {"size": "3", "line": "bus"}))
    return Feature(fid, rng.choice(KINDS), shape, tags)


def drawn_puts(rng, there):
    """Some of the features in place of others, or new ones, by fid; None for those that are deleted."""
    fids = rng.sample(FIDS, rng.randint(1, 3))
    is_kept = [fid not in there or rng.random() < 0.6 for fid in fids]
    return {
        fid: drawn_feature(rng, fid) if kept else None
        for fid, kept in zip(fids, is_kept, strict=True)
    }


def rows_of(features):
    some = features or [drawn_feature(Random(0), "nobody")]
    return layer_rows(features_of(some), HALVES).slice(0, None if features else 0)


def history(rng, puts):
    """The features of each version, and what was put from one to the next."""
    there = {
        fid: drawn_feature(rng, fid) for fid in rng.sample(FIDS, rng.randint(1, 6))
    }
    versions, steps = [there], []
    for _ in range(puts):
        put = drawn_puts(rng, there)
        there = {fid: one for fid, one in {**there, **put}.items() if one is not None}
        steps.append(put)
        versions.append(there)
    return versions, steps


def indexes_of(versions, steps):
    """The index of each version, each made from the one before."""
    indexes = [index_of(list(versions[0].values()), space=PLANE)]
    for since, put in enumerate(steps):
        rows = rows_of([one for one in put.values() if one is not None])
        index = patched(indexes[-1], put, rows, since=since)
        assert index is not None
        indexes.append(index)
    return indexes


@st.composite
def histories(draw):
    rng = Random(draw(st.integers(0, (1 << 48) - 1)))
    return rng, *history(rng, draw(st.integers(1, 9)))


LARGER = st.sampled_from([1, 2, 64])


@pytest.mark.spec("P3", "B3")
@tries(60)
@given(histories(), LARGER)
def test_a_version_made_from_others_answers_as_one_pair_at_a_time(drawn, larger):
    rng, versions, steps = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(patching, "_LARGER", larger)
        index = indexes_of(versions, steps)[-1]
    brute = ShapelyLayer(list(versions[-1].values()))
    assert index.fids.tolist() == brute.fids.tolist()
    x, y = np.array([[rng.randint(-7, 8) for _ in range(20)] for _ in range(2)], float)
    x[0] = np.nan
    which = {
        "kinds": rng.choice(((), ("park",))),
        "tags": rng.choice(((), (("size", "2"),))),
    }
    for options in (
        {},
        {"within": True},
        {"distance_m": 1.5},
        {"growth": Growth(value=2.0)},
    ):
        same(
            index.match(x, y, **options, **which),
            brute.match(x[1:], y[1:], **options, **which),
            1,
        )
    for k, distance_m in ((1, None), (3, None), (2, 3.0)):
        asked = {"distance_m": distance_m, **which}
        same(
            index.k_nearest(x, y, k, **asked),
            brute.k_nearest(x[1:], y[1:], k, **asked),
            1,
        )
    texts = pa.array([*FIDS, *KINDS, *SIZES, None])
    for column in ("fid", "kind", "size", "line"):
        same(index.keyed(texts, column, **which), brute.keyed(texts, column, **which))
        assert index.values(column).to_pylist() == brute.values(column).to_pylist()
    ways = Segments(ax=x[1:-1], ay=y[1:-1], bx=x[2:], by=y[2:])
    for distance_m in (None, 1.5):
        asked = {"distance_m": distance_m, **which}
        same(index.crossed(ways, **asked), brute.crossed(ways, **asked))
    feature = (
        np.array([rng.randrange(len(brute.fids)) for _ in x[1:]])
        if len(brute.fids)
        else np.empty(0, int)
    )
    if len(feature):
        whole = index.rows(feature)
        assert whole["fid"].to_pylist() == brute.fids[feature].tolist()
        shapes = [brute.features[number].geometry for number in feature]
        assert shapely.from_wkb(whole["geometry"].to_pylist()).tolist() == shapes
    x, y = x[1 : 1 + len(feature)], y[1 : 1 + len(feature)]
    for to_border in (False, True):
        far = index.distances(x, y, feature, to_border=to_border)
        assert np.allclose(far, brute.distances(x, y, feature, to_border=to_border))
    assert np.allclose(
        np.hypot(*(index.nearest(x, y, feature) - [x, y])),
        brute.distances(x, y, feature),
    )


def same(pairs, others, first=0):
    assert list(zip(*(p.tolist() for p in pairs), strict=True)) == [
        (row + first, feature)
        for row, feature in zip(*(p.tolist() for p in others), strict=True)
    ]


@pytest.mark.spec("X4")
@tries(60)
@given(histories(), LARGER)
def test_what_differs_from_an_older_version_is_all_that_was_put_in_between(
    drawn, larger
):
    _, versions, steps = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(patching, "_LARGER", larger)
        index = indexes_of(versions, steps)[-1]
    for since in range(len(steps)):
        parts = index.changed_since(since)
        expected = []
        for before, put in zip(versions[since:], steps[since:], strict=False):
            expected += [before[fid] for fid in put if fid in before]
            expected += [one for one in put.values() if one is not None]
        features = [
            (fid, kind, size)
            for part in parts
            for fid, kind, size in zip(
                part.fids.tolist(),
                part.values("kind").to_pylist(),
                part.values("size").to_pylist(),
                strict=True,
            )
        ]
        assert sorted(map(repr, features)) == sorted(
            repr((one.fid, one.kind, one.tags.get("size"))) for one in expected
        )
        x, y = np.meshgrid(np.arange(-7.0, 11), np.arange(-7.0, 11))
        met = np.concatenate([part.match(x.ravel(), y.ravel())[0] for part in parts])
        brute = ShapelyLayer(expected).match(x.ravel(), y.ravel())[0]
        assert np.unique(met).tolist() == np.unique(brute).tolist()
    assert index.changed_since(len(steps)) is None
