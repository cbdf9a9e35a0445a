"""KNN beside a JOIN: the nearest of a place, each with its partners (G5, G9, B9)."""

import pytest
import shapely

from st_common.errors import QueryError
from st_common.query.builder import query
from st_common.query.explain import explain, lines
from tests.kit.by_hand import end, fix, gone, layer, register
from tests.kit.oracle import Feature
from tests.kit.roads import plan_of, told_of

pytestmark = pytest.mark.spec("G5", "G9", "B9")
HOW = [{}, {"cuts": (2, 4, 6)}, {"shards": 3, "restarts": frozenset({0, 1})}]
PARKS = [
    Feature("w1", "park", shapely.box(2, -1, 4, 1), {}),
    Feature("w2", "park", shapely.box(8, -1, 12, 1), {}),
]
IN_A_PARK = "FROM s t JOIN parks p ON ST_Intersects(t, p)"
ROWS = [
    fix("a", 1, 1, 0, kind="taxi"),
    fix("b", 1, 3, 0, kind="taxi"),
    fix("c", 1, 9, 0, kind="bus"),
    fix("c", 2, 2, 0, kind="bus"),  # nearer than b: a and c are the two
    gone("a", 3),
]


def said(row):
    shown = row["fields"] or ("" if row["value"] is None else f"{row['value']:g}")
    return f"{row['object']}|{row['partner'] or ''} {shown}".rstrip()


def told(text, rows=ROWS, **how):
    asked = [layer("parks", 1), register("q", plan_of(text), layer_version=1)]
    known = {("parks", 1): PARKS, ("parks", 2): PARKS[1:]}
    return told_of([*asked, *rows, end()], known, said, **how)


@pytest.mark.parametrize("how", HOW)
def test_the_nearest_are_joined_with_features(how):
    """Whoever is in no park is one of the two all the same."""
    assert told(f"SELECT * {IN_A_PARK} KNN (2, 0, 0)", **how) == [
        "1 +b|w1",
        "2 -b|w1",
        "2 +c|w1",
        "3 +b|w1",
    ]


@pytest.mark.parametrize("how", HOW)
def test_a_condition_on_the_object_chooses_among_whom_the_nearest_are(how):
    text = f"SELECT * {IN_A_PARK} WHERE t.kind = 'taxi' KNN (2, 0, 0)"
    assert told(text, **how) == ["1 +b|w1"]
    left = IN_A_PARK.replace("JOIN", "LEFT JOIN")
    lonely = [fix("d", 1, 20, 0), *ROWS]
    assert told(f"SELECT * {left} KNN (1, 0, 0)", lonely, **how) == [
        "1 +a|",
        "3 -a|",
        "3 +c|w1",
    ]


@pytest.mark.parametrize("how", HOW)
def test_the_nearest_of_an_object_are_paired_with_all_others(how):
    """Around c, which comes first in no pair, and is a partner; of the equally near a and b the first is by id."""
    pairs = "FROM s a JOIN s b ON ST_DWithin(a, b, 2 m) KNN ('M', 1, 'c')"
    assert told(f"SELECT * {pairs}", **how) == [
        "1 +b|a",
        "2 +a|b",
        "2 +a|c",
        "2 -b|a",
        "3 -a|b",
        "3 -a|c",
        "3 +b|c",
    ]
    near = "FROM s a JOIN s b ON ST_DWithin(a, b, 2 m) KNN (1, 0, 0)"
    assert told(f"SELECT * {near}", **how) == [
        "1 +a|b",
        "2 +a|c",
        "3 -a|b",
        "3 -a|c",
        "3 +c|b",
    ]


def test_a_new_version_of_the_layer_and_groups_follow():
    far = [fix("d", at, 99, 0) for at in (3, 5)]
    rows = [*ROWS[:2], far[0], layer("parks", 2), far[1]]
    assert told(f"SELECT * {IN_A_PARK} KNN (2, 0, 0)", rows) == ["1 +b|w1", "3 -b|w1"]
    counted = f"SELECT p.fid, COUNT(*) {IN_A_PARK} KNN (3, 0, 0) GROUP BY p.fid"
    assert told(counted) == ["1 +w1| 1", "1 +w2| 1", "2 -w1| 1", "2 +w1| 2", "2 -w2| 1"]


def test_it_is_explained_and_built_and_what_has_no_meaning_is_refused():
    built = query("s").nearest(2, 0, 0).join("parks").on_intersects().build()
    assert built == plan_of(f"SELECT * {IN_A_PARK} KNN (2, 0, 0)")
    shown = "\n".join(lines(explain(built, "q")))
    assert shown.index("join layer parks") < shown.index("knn the 2 nearest")
    with pytest.raises(QueryError, match=r"rank\(\) and distance\(\) and JOIN exclude"):
        query("s").nearest(2, 0, 0).join("parks").on_intersects().select("rank()")
