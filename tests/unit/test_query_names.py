"""Names are found in any case, the papers' words for the object mean it, and a bare word beside a text is a text."""

import pytest

from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.query.meant import found
from st_common.query.names import resolved
from st_common.query.plan import Aggregate, PairJoin
from st_common.query.problem import TextError
from st_common.query.text import parse

ATTRIBUTES = {"Type": "string", "speed": "double", "order": "long", "free": "bool"}
STREAMS = {
    "taxis": StreamSettings(
        name="taxis",
        format="csv",
        columns=Columns(object="id", x="x", y="y"),
        attributes=ATTRIBUTES,
    ),
    "trips": StreamSettings(
        name="trips",
        format="csv",
        columns=Columns(object="car", x="x", y="y"),
        attributes={"id": "long"},
    ),
}
LAYERS = ("parks", "cars")


def tags_of(layer):
    return {"parks": {"ObjectID"}, "cars": {"name"}}[layer]


def meant(select):
    """The plan of a SELECT as it is resolved, and its notices."""
    (statement,) = parse(f"REGISTER QUERY q AS {select}")
    done = resolved(statement, STREAMS, LAYERS, tags_of, lambda _: None)
    return done.statement, [str(notice) for notice in done.notices]


@pytest.mark.spec("W8")
@pytest.mark.parametrize(
    ("condition", "now", "words"),
    [
        ("type = Car", "Type = 'Car'", ["Car"]),
        ('type = "Car"', "Type = 'Car'", ["Car"]),  # as GPAC prints it
        ("Car = t.TYPE", "'Car' = Type", ["Car"]),
        ("t.ID = mycar", "object = 'mycar'", ["mycar"]),
        (
            "ObjectID <> o1 AND oid >= O2",
            "object <> 'o1' AND object >= 'O2'",
            ["o1", "O2"],
        ),
        (
            "type IN (Car, 'Bus', Tram)",
            "Type IN ('Car', 'Bus', 'Tram')",
            ["Car", "Tram"],
        ),
        ("type BETWEEN a AND b", "Type BETWEEN 'a' AND 'b'", ["a", "b"]),
        ("lower(type) LIKE car", "LOWER(Type) LIKE 'car'", ["car"]),
        (
            "CASE WHEN type = Car THEN SPEED ELSE 0 END > 3",
            "CASE WHEN Type = 'Car' THEN speed ELSE 0 END > 3",
            ["Car"],
        ),
    ],
)
def test_a_bare_word_beside_a_text_is_a_text_and_is_told(condition, now, words):
    statement, notices = meant(f"SELECT * FROM taxis t WHERE {condition}")
    assert statement.plan.where == now
    assert [notice.partition(": ")[2] for notice in notices] == [
        f"{word} is no column of taxis: read as the text '{word}'" for word in words
    ]
    for word, notice in zip(words, notices, strict=True):
        column = int(notice.partition("column ")[2].partition(":")[0])
        assert statement.text[column - 1 :].startswith((word, f'"{word}"'))
    assert {name for term in statement.terms for name, _ in term.columns} <= {
        *ATTRIBUTES,
        "object",
    }


@pytest.mark.parametrize(
    "condition",
    [
        "speed > fast",  # a number is not compared with a word
        "stat = 'free'",  # two texts are not worth comparing: a column was meant
        'Type = t."Car"',
        "Type = t.Car",  # so it is behind a dot
        "Type = Car || 'x'",  # a part of an expression
        "foo = bar",
        "free = yes",
        "elapsed",
    ],
)
def test_other_unknown_names_stay_as_they_are(condition):
    statement, notices = meant(f"SELECT * FROM taxis t WHERE {condition}")
    assert notices == []
    known = {name.casefold() for name in ATTRIBUTES}
    unknown = [
        name
        for term in statement.terms
        for name, _ in term.columns
        if name.casefold() not in known
    ]
    assert unknown


def test_columns_have_the_spelling_of_their_declaration():
    statement, _ = meant(
        'SELECT tYPE, SPEED + 1, "ORDER", SPEED AS Speed_Now, ID, X FROM TAXIS WHERE FREE'
    )
    assert statement.plan.stream == "taxis"
    assert statement.plan.columns == (
        ("Type", "Type"),
        ("speed + 1", "speed + 1"),
        ("order", '"order"'),
        ("Speed_Now", "speed"),
        ("object", "object"),
        ("x", "x"),
    )
    assert statement.plan.where == "free"


@pytest.mark.parametrize(
    ("select", "aggregate"),
    [
        ("COUNT(ID)", Aggregate(function="count_distinct")),
        ("COUNT(DISTINCT oid)", Aggregate(function="count_distinct")),
        ("COUNT(TYPE)", Aggregate(function="count", argument="Type")),
        ("AVG(Speed)", Aggregate(function="avg", argument="speed")),
        ("DISTINCT TYPE", Aggregate(function="distinct", group="Type")),
    ],
)
def test_aggregates_are_over_declared_names(select, aggregate):
    assert meant(f"SELECT {select} FROM taxis")[0].plan.aggregate == aggregate


def test_groups_and_keys_are_declared_names():
    assert (
        meant("SELECT COUNT(*) FROM taxis GROUP BY TYPE")[0].plan.aggregate.group
        == "Type"
    )
    pairs = meant(
        "SELECT * FROM taxis a JOIN taxis b ON a.TYPE = b.TYPE AND a.ID = b.ID"
    )[0].plan.pairs
    assert pairs == PairJoin(keys=("Type", "object"))


def test_what_must_be_the_same_is_so_in_any_case():
    grouped = meant("SELECT Lower(tYPE), COUNT(*) FROM taxis GROUP BY LOWER(Type)")[
        0
    ].plan.aggregate
    assert grouped == Aggregate(function="count", group="LOWER(Type)")
    assert meant("SELECT * FROM Taxis a, taxis b WHERE a.TYPE = b.type")[
        0
    ].plan.pairs == PairJoin(keys=("Type",))
    with pytest.raises(TextError, match="expected what the query is grouped by"):
        meant("SELECT type || 'A', COUNT(*) FROM taxis GROUP BY type || 'a'")


def test_a_declared_attribute_is_what_its_name_says():
    statement, notices = meant("SELECT ID FROM trips WHERE Id > 3 AND OID = car7")
    assert statement.plan.columns == (("id", "id"),)
    assert statement.plan.where == "id > 3 AND object = 'car7'"
    assert len(notices) == 1


@pytest.mark.parametrize(("layer", "right"), [("cars", "fid"), ("parks", "ObjectID")])
def test_the_papers_word_for_a_features_id_is_its_id_unless_it_is_a_tag(layer, right):
    join = meant(
        f"SELECT M.ObjectID FROM taxis M JOIN {layer.upper()} F ON M.ObjectID = F.ObjectID"
    )[0].plan.join
    assert (join.layer, join.left, join.right) == (layer, "object", right)


def test_what_is_unknown_stays_for_the_checks():
    statement, notices = meant(
        "SELECT Speed FROM buses JOIN woods ON ST_Intersects(buses, woods)"
    )
    assert (statement.plan.stream, statement.plan.join.layer, notices) == (
        "buses",
        "woods",
        [],
    )
    assert statement.plan.columns == (("Speed", "Speed"),)


def test_a_name_that_is_written_as_it_is_known_is_preferred():
    assert found("B", ["b", "B"]) == "B"
    assert found("B", ["a", "b"]) == "b"
    assert found("c", ["a", "b"]) == "c"


@pytest.mark.spec("W8")
def test_a_word_beside_an_average_speed_is_a_text():
    way = "[RANGE BY '50 km' RATTR SPACE, SLIDE BY '10 km' SATTR SPACE]"
    statement, notices = meant(
        f"SELECT RStream (mycar, AvgSpd(R), ObjectID, 'x') FROM R=Taxis {way} WHERE ID=mycar"
    )
    assert statement.plan.aggregate == Aggregate(function="avgspd")
    assert [term.text for term in statement.terms] == [
        "object = 'mycar'",
        "'mycar'",
        "object",
        "'x'",
    ]
    assert [notice.partition(": ")[2][:5] for notice in notices] == ["mycar", "mycar"]
