"""The laws on longitude and latitude: metres, the antimeridian, poles, against brute force with another geodesic.

Engine and oracle differ by up to 0.01 %, so places are few and all their distances clearly differ: see the first test.
"""

from dataclasses import replace
from itertools import combinations, pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from st_common.query.neighbours import GroupNearest, Nearest, Place, ReverseNearest
from st_common.query.plan import PairJoin, Plan
from st_common.query.region import Box, Circle, MovingBox, MovingCircle
from st_common.testing import oracle
from st_common.testing.laws import run_steps, told, told_by_oracle
from st_common.testing.oracle_readings import metres
from st_common.testing.random_plans import FOCALS, STREAM
from st_common.testing.strategies import case_of, segmentations

PLACES = (
    (179.943, 59.993), (-179.962, 60.049), (-179.998, 59.909), (-178.922, 60.692),  # around the antimeridian
    (27.406, 89.911), (-163.581, 89.959), (87.766, 89.843),  # around a pole
    (25.271, 60.381), (25.02, 60.109), (24.956, 60.045), (3.394, -2.721), (0.014, -0.036),
)  # fmt: skip
RADII = (1500.0, 4000.0, 9100.0, 50_000.0, 700_000.0, 8_000_000.0)


def far(places):
    return sorted(metres(a, b, geographic=True) for a, b in combinations(places, 2))


def test_distances_between_the_places_and_radii_clearly_differ():
    found = sorted([*far(PLACES), *RADII])
    assert all(b > a * 1.0003 for a, b in pairwise(found))


def plan_of(rng):
    x, y = rng.choice(PLACES)
    place = Place(focal=rng.choice(FOCALS)) if rng.random() < 0.6 else Place(x=x, y=y)
    radius = rng.choice(RADII)
    inside = rng.choice((
        Circle(x=x, y=y, radius_m=radius), MovingCircle(focal=rng.choice(FOCALS), radius_m=radius),
        MovingBox(focal=rng.choice(FOCALS), width=0.31, height=0.47), Box(minx=-180, miny=50.5, maxx=100.5, maxy=90),
    ))  # fmt: skip
    every = rng.choice(("changes", "every"))
    return rng.choice((
        Plan(stream=STREAM, inside=inside, emit=every),
        Plan(stream=STREAM, neighbours=Nearest(k=rng.randint(1, 3), place=place), emit=every),
        Plan(stream=STREAM, neighbours=ReverseNearest(place=place)),
        Plan(stream=STREAM, neighbours=GroupNearest(k=1, total=rng.choice(("max", "min")), places=(place, place))),
        Plan(stream=STREAM, pairs=PairJoin(distance_m=radius)),
    ))  # fmt: skip


def on_degrees(seed):
    """A case of the grid with its fixes at the places, and its queries replaced by such on degrees."""
    case, rng, rows = case_of(seed, kind="fixes"), Random(seed), []
    for row in case.rows:
        if isinstance(row, oracle.Fix):
            x, y = rng.choice(PLACES)
            rows.append(row if row.gone else replace(row, x=x, y=y))
        elif "plan" in row.row:
            rows.append(replace(row, row={**row.row, "plan": plan_of(rng).to_json()}))
        else:
            rows.append(row)
    return replace(case, rows=tuple(rows), rules=replace(case.rules, geographic=True))


@pytest.mark.spec("G4", "G5", "G8", "G9", "X1")
@settings(max_examples=25)
@given(st.integers(0, (1 << 48) - 1), st.data(), st.sampled_from((1, 3)))
def test_on_degrees_any_batching_and_shards_tell_what_brute_force_tells(seed, data, shards):
    case = on_degrees(seed)
    changes, _, order = run_steps(case, data.draw(segmentations(len(case.rows))), shards=shards)
    expected = oracle.judge(case.rows, rules=case.rules)
    assert told(changes, order) == told_by_oracle(expected.changes)
