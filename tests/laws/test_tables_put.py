"""Tables against a dict: whatever was put, deleted, loaded, folded, every version is read as it was written."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.home import Home
from st_common.geometry.space import PLANE
from st_common.layers.features import Features
from st_common.layers.rows import layer_rows
from st_common.layers.stored import load_index, load_part
from st_common.layers.table import (
    append_rows,
    changes_between,
    feature_count,
    fold,
    read_rows,
    replace_rows,
    table_path,
)
from tests.kit.effort import tries
from tests.kit.layer_tables import REGIONS

pytestmark = pytest.mark.spec("B15", "P3")

LAYER = "stops"
KEYS = st.sampled_from("abcdef")
PLACES = st.one_of(
    st.none(),
    st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 5)),
)
SOME = st.dictionaries(KEYS, PLACES, min_size=1, max_size=4)
DOINGS = st.lists(
    st.one_of(
        st.tuples(st.just("load"), SOME),
        st.tuples(st.just("put"), SOME),
        st.tuples(st.just("put"), SOME),
        st.tuples(st.just("delete"), st.sets(KEYS, min_size=1, max_size=3)),
        st.tuples(st.just("fold"), st.sampled_from([1, 2])),
    ),
    max_size=9,
)


def shape(place):
    if place is None:
        return shapely.Point()
    x, y, width = place
    return shapely.box(x, y, x + width, y + width) if width else shapely.Point(x, y)


def features(places, number):
    keys = sorted(places)
    tags, shapes = np.empty(len(keys), object), np.empty(len(keys), object)
    tags[:] = [{"number": str(number)} for _ in keys]
    shapes[:] = [shape(places[key]) for key in keys]
    return Features(
        fids=np.array(keys, object),
        kinds=np.array(["stop"] * len(keys), object),
        tags=tags,
        geometries=shapes,
        wanted=len(keys),
    )


def stored(home, version):
    """What a version holds, read feature by feature: key to place and tag."""
    rows = read_rows(home, LAYER, version, filters=[("home", "=", True)])
    assert feature_count(home, LAYER, version) == len(rows)
    return {
        row["fid"]: (shapely.from_wkb(row["geometry"]), dict(row["tags"])["number"])
        for row in rows.to_pylist()
    }


def same(one, other):
    assert one.keys() == other.keys()
    for key, (geometry, number) in one.items():
        place, since = other[key]
        assert number == str(since)
        assert geometry.is_empty if place is None else geometry.equals(shape(place))


def carried_out(home, doings):
    """The versions with what a dict says of them, and which keys each doing after a version has touched."""
    path, now, said = table_path(home, LAYER), {}, {}
    for number, (what, of) in enumerate(doings):
        if what == "load":
            now = {key: (place, number) for key, place in of.items()}
            version = replace_rows(path, layer_rows(features(of, number), REGIONS))
        elif what == "put":
            now = now | {key: (place, number) for key, place in of.items()}
            version = append_rows(
                path, layer_rows(features(of, number), REGIONS), now_us=number
            )
        elif what == "delete" and said:
            now = {key: value for key, value in now.items() if key not in of}
            rows = layer_rows(features(dict.fromkeys(of), number), REGIONS)
            version = append_rows(
                path, rows.append_column("deleted", [[True] * len(rows)]), now_us=number
            )
        elif what == "fold" and said:
            fold(home, LAYER, versions=of)
            version = max(said) + 1 if fold_made_one(home, max(said)) else max(said)
        else:
            continue
        said[version] = (now, what, set(of) if what != "fold" else set())
    return said


def fold_made_one(home, before):
    from st_common import tables

    return tables.version(table_path(home, LAYER)) != before


@tries(60)
@given(DOINGS)
def test_every_version_of_a_table_is_read_as_a_dict_says(doings):
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        said = carried_out(home, doings)
        for version, (expected, _, _) in said.items():
            same(stored(home, version), expected)
            index = load_index(home, LAYER, version, space=PLANE)
            assert index.fids.tolist() == sorted(expected)
            of_place = {
                (point, index.fids[feature])
                for point, feature in zip(
                    *index.match(np.arange(12.0), np.arange(12.0)), strict=True
                )
            }
            assert of_place == {
                (at, key)
                for key, (place, _) in expected.items()
                for at in range(12)
                if place is not None and shapely.Point(at, at).intersects(shape(place))
            }


@tries(30)
@given(DOINGS, st.sampled_from(REGIONS.region_id))
def test_a_region_alone_knows_what_was_put_elsewhere(doings, region):
    """A feature that lay here and was put there is here no more, though no row of here says so."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        for version, (expected, _, _) in carried_out(home, doings).items():
            at = REGIONS.region_id.index(region)
            cell = shapely.box(*np.clip(REGIONS.bounds[at], -99, 99))
            part = load_part(home, LAYER, version, [region], space=PLANE)
            here = {
                key
                for key, (place, _) in expected.items()
                if (at == 0 if place is None else shape(place).intersects(cell))
            }
            assert set(part.fids.tolist()) == here


@tries(30)
@given(DOINGS)
def test_what_changed_between_two_versions_is_what_was_put_and_deleted(doings):
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        said = carried_out(home, doings)
        versions = sorted(said)
        for at, older in enumerate(versions):
            for to in range(at, len(versions)):
                after = [said[each] for each in versions[at + 1 : to + 1]]
                changed = changes_between(home, LAYER, older, versions[to])
                if any(what == "load" for _, what, _ in after):
                    assert changed is None
                else:
                    assert changed == set().union(*(keys for _, _, keys in after))
