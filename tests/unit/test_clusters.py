"""Points in clusters: each is in one, and in its circle."""

import numpy as np
import pytest

from st_common.geometry.clusters import clusters_of
from st_common.geometry.space import GLOBE, PLANE


@pytest.mark.parametrize("space", [PLANE, GLOBE])
@pytest.mark.parametrize("count", [0, 1, 8, 9, 700])
def test_every_point_is_in_one_cluster_and_in_its_circle(count, space):
    x, y = np.random.default_rng(count).uniform(-80, 80, (2, count))
    coarse, fine = clusters_of(x, y, space=space)
    heap, small = coarse.points(np.arange(len(coarse.x)))
    assert sorted(small.tolist()) == list(range(len(fine.x)))
    of, point = fine.points(small)
    assert sorted(point.tolist()) == list(range(count))
    for clusters, at in ((fine, small[of]), (coarse, heap[of])):
        far = space.measure(
            space.unrounded(clusters.x[at], clusters.y[at], x[point], y[point])
        )
        assert (far <= clusters.radius[at]).all()


def test_neighbours_share_a_cluster():
    x, y = (
        side.ravel().astype(float) for side in np.meshgrid(np.arange(64), np.arange(64))
    )
    coarse, fine = clusters_of(x, y, space=PLANE)
    assert fine.radius.mean() < 4
    assert coarse.radius.mean() < 16
