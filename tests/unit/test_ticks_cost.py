"""What ticks do not do: nothing is asked again that was answered, nothing is held or looked at for each query alone."""

import tracemalloc

import pytest
import shapely

from bench.forms import cars, q3_plans
from bench.ticks import Work, packets_of
from st_common.geometry.space import PLANE
from st_common.operators.ahead import ahead
from st_common.operators.expressions import evaluation as expressions
from st_common.operators.pairs import pairing
from st_common.operators.runtime.stages import step
from st_common.operators.skeleton.kinds import reverse
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.query.neighbours import Nearest, Place, ReverseNearest
from st_common.query.plan import Aggregate, LayerJoin, PairJoin, Plan
from st_common.regions.registry import Box, MovingCircle
from tests.kit.by_hand import end, fix, log, register
from tests.kit.laws import run_steps
from tests.kit.oracle import Feature, Rules
from tests.kit.shapely_layer import ShapelyLayer
from tests.kit.strategies import Case, Segmentation

MB = 1 << 20
SQUARE = Feature(fid="f", kind="park", geometry=shapely.box(0, 0, 5, 5))
SPACE = Box(minx=0.0, miny=0.0, maxx=100.0, maxy=100.0)


def told(rows, layers=None):
    """The changes, all rows being one batch."""
    case = Case(rows=tuple(rows), layers=layers or {}, rules=Rules())
    changes, _, _ = run_steps(case, Segmentation(cuts=(), batches=()))
    return changes


@pytest.fixture
def calls(monkeypatch):
    """Counts the calls of functions."""
    counted = {}

    def count(module, name):
        inner, key = getattr(module, name), (module.__name__, name)

        def counting(*args, **kwargs):
            counted[key] = counted.get(key, 0) + 1
            return inner(*args, **kwargs)

        monkeypatch.setattr(module, name, counting)
        return lambda: counted.pop(key, 0)

    return count


def drive(seconds):
    return [
        fix(name, second, second + at, 1.0, kind=kind, load=float(second % 5))
        for second in range(1, seconds + 1)
        for at, (name, kind) in enumerate((("a", "taxi"), ("b", "bus"), ("c", "taxi")))
    ]


@pytest.mark.spec("X13", "G9")
def test_a_longer_replay_asks_no_more_of_the_database(calls):
    asked = calls(expressions, "evaluated")
    plans = [
        Plan(
            stream="s",
            neighbours=Nearest(k=1, place=Place(x=0.0, y=0.0)),
            where="kind = 'taxi'",
        ),
        Plan(
            stream="s",
            inside=SPACE,
            where="load > 2",
            aggregate=Aggregate(function="avg", argument="load"),
        ),
        Plan(
            stream="s",
            inside=SPACE,
            aggregate=Aggregate(function="count", group="kind"),
        ),
        Plan(stream="s", pairs=PairJoin(distance_m=2.0, keys=("kind",))),
        Plan(
            stream="s",
            inside=MovingCircle(focal="b", radius_m=5.0),
            columns=(("twice", "load * 2"),),
            emit="every",
        ),
    ]
    counts = []
    for seconds in (10, 60):
        changes = told(
            log(
                *(register(f"q{n}", plan) for n, plan in enumerate(plans)),
                *drive(seconds),
                end(),
            )
        )
        assert len(changes) > seconds
        counts.append(asked())
    assert counts[0] == counts[1]


@pytest.mark.spec("X13", "P8")
def test_ticks_of_a_batch_are_held_against_queries_all_at_once(calls):
    asked = (
        calls(type(PLANE), "is_within"),
        calls(type(PLANE), "rank"),
        calls(reverse, "gaps"),
        calls(ahead, "match"),
    )
    plans = [
        Plan(stream="s", inside=MovingCircle(focal="b", radius_m=5.0)),
        Plan(stream="s", neighbours=Nearest(k=1, place=Place(focal="a"))),
        Plan(stream="s", neighbours=ReverseNearest(place=Place(focal="a"))),
        Plan(
            stream="s",
            inside=SPACE,
            aggregate=Aggregate(function="avg", argument="load"),
        ),
    ]
    counts = []
    for seconds in (10, 60):
        changes = told(
            log(
                *(register(f"q{n}", plan) for n, plan in enumerate(plans)),
                *drive(seconds),
                end(),
            )
        )
        assert len(changes) > seconds
        counts.append([count() for count in asked])
    assert all(counts[0])
    assert counts[0] == counts[1]


@pytest.mark.spec("X13", "W4")
def test_a_hundred_average_speeds_of_one_car_each_hold_no_array_of_queries_times_cars():
    objects, queries = 10_000, 100
    work = Work(
        plans=q3_plans(queries, objects),
        batches=list(cars(objects, 4)),
        settings=Settings(),
    )
    state, changes = State(), 0
    for packets in packets_of(work):
        tracemalloc.start()
        done = step(state, packets, work.settings, lambda *_: ShapelyLayer([]))
        peak, state, changes = (
            tracemalloc.get_traced_memory()[1],
            done.state,
            changes + len(done.changes),
        )
        tracemalloc.stop()
        assert peak < 50 * MB
    assert changes >= queries


def joining(count):
    join = LayerJoin(layer="l", predicate="intersects")
    return [
        Plan(
            stream="s", inside=MovingCircle(focal="b", radius_m=float(n + 1)), join=join
        )
        for n in range(count)
    ]


def pairing_plans(count):
    boxes = [Box(minx=0.0, miny=0.0, maxx=100.0 + n, maxy=10.0) for n in range(count)]
    return [
        Plan(stream="s", inside=box, pairs=PairJoin(distance_m=2.0)) for box in boxes
    ]


@pytest.mark.spec("X13", "P8")
def test_pairs_are_looked_for_once_for_all_queries(calls):
    looked, counts = calls(pairing, "points_in_circles"), []
    for count in (3, 40):
        plans = pairing_plans(count)
        assert len(
            told(
                log(
                    *(register(f"q{n}", plan) for n, plan in enumerate(plans)),
                    *drive(5),
                    end(),
                )
            )
        )
        counts.append(looked())
    assert counts[0] == counts[1]


@pytest.mark.spec("X13", "P8")
def test_what_is_around_many_objects_meets_a_layer_once(calls):
    looked, counts = calls(ShapelyLayer, "match"), []
    for count in (3, 40):
        queries = (
            register(f"q{n}", plan, layer_version=0)
            for n, plan in enumerate(joining(count))
        )
        assert len(told(log(*queries, *drive(5), end()), {("l", 0): [SQUARE]}))
        counts.append(looked())
    assert counts[0] == counts[1]
