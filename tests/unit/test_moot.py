"""IF EXISTS and IF NOT EXISTS: what is there stays, what is not there is not missed, and a notice says so."""

from pathlib import Path

import pytest

from st_common.client import HomeClient
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.query.area_store import HomeAreas, areas
from st_common.query.grammar.expecting import expected_after
from st_common.query.lookup import queries
from st_common.query.problem import TextError
from st_common.query.registry import Outcome, carry_out
from st_common.query.text import parse

STREAMS = {
    name: StreamSettings(
        name=name, format="csv", columns=Columns(object="id", x="x", y="y")
    )
    for name in ("cars", "trucks")
}
PAGE = Path(__file__).resolve().parents[2] / "docs" / "query-language.md"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def done(home: Home, text: str) -> Outcome:
    return carry_out(home, STREAMS, parse(text, areas=HomeAreas(home)), owner="me")


def did(outcome: Outcome) -> list[tuple[str, str]]:
    return [(row.op, row.name) for row in outcome.rows]


@pytest.mark.spec("P4")
def test_the_page_is_carried_out_twice_and_the_second_time_does_nothing(home: Home):
    text = PAGE.read_text(encoding="utf-8").partition("```sql conditional\n")[2]
    text = text.partition("```")[0]
    first, second = done(home, text), done(home, text)
    assert (did(first), first.created) == ([("register", "in_the_yard_now")], ("yard",))
    assert (did(second), second.created, second.removed) == ([], (), ())
    assert [str(one) for one in second.notices] == [
        "line 1, column 27: area 'yard' is there already, and stays as it is",
        "line 2, column 30: query 'in_the_yard_now' is there already, and stays as it is",
        "line 3, column 22: there is no query 'in_the_old_yard', so nothing is dropped",
        "line 4, column 21: there is no area 'old_yard', so nothing is dropped",
    ]


@pytest.mark.spec("P4")
def test_what_is_there_stays_in_any_case_and_is_what_the_text_means(home: Home):
    done(home, "CREATE AREA a AS (0, 0, 1, 1); REGISTER QUERY q AS SELECT * FROM cars")
    done(
        home,
        """CREATE AREA IF NOT EXISTS A AS (5, 5, 9, 9);
        REGISTER QUERY IF NOT EXISTS Q AS SELECT * FROM cars INSIDE a;
        REGISTER QUERY IF NOT EXISTS p AS SELECT * FROM cars INSIDE A;
        CREATE AREA IF NOT EXISTS b AS (2, 2, 3, 3);
        REGISTER QUERY IF NOT EXISTS r AS SELECT * FROM cars INSIDE b""",
    )
    known = {row.name: row for row in queries(home)}
    assert [known[name].version for name in "pqr"] == [1, 1, 1]
    assert known["q"].plan.inside is None
    assert (known["p"].plan.inside.minx, known["p"].plan.inside.maxx) == (0.0, 1.0)
    assert known["r"].plan.inside.minx == 2.0
    assert [area.name for area in areas(home)] == ["a", "b"]


@pytest.mark.spec("P4")
def test_what_was_dropped_is_registered_again_and_what_is_there_dropped(home: Home):
    text = "REGISTER QUERY if not  exists q AS SELECT * FROM cars"
    drop = "DROP QUERY IF EXISTS q; DROP AREA IF EXISTS a"
    done(home, f"{text}; CREATE AREA a AS (0, 0, 1, 1)")
    assert did(done(home, drop)) == [("drop", "q")]
    assert not areas(home)
    assert did(done(home, drop)) == []
    assert [(row.op, row.version) for row in done(home, text).rows] == [("register", 2)]


def test_a_statement_that_does_nothing_is_checked_all_the_same(home: Home):
    done(home, "REGISTER QUERY q AS SELECT * FROM cars")
    for wrong in ("SELECT * FROM lorries", "SELECT speed FROM cars"):
        with pytest.raises(TextError, match="unknown"):
            done(home, f"REGISTER QUERY IF NOT EXISTS q AS {wrong}")


def test_only_what_there_can_be_twice_takes_the_words():
    for wrong in (
        "REPLACE QUERY IF EXISTS q AS SELECT * FROM cars",
        "CREATE OR REPLACE AREA IF NOT EXISTS a AS (0, 0, 1, 1)",
        "DROP QUERY IF NOT EXISTS q",
    ):
        with pytest.raises(TextError, match="expected"):
            parse(wrong)
    (named,) = parse("DROP QUERY if")
    assert (named.name, named.conditional) == ("if", False)


def test_statements_alike_are_as_conditional_as_they_say(home: Home):
    text = "".join(
        f"REGISTER QUERY {'IF NOT EXISTS ' * (at % 3 > 0)}q{at} AS SELECT * FROM cars INSIDE ({at}, 0, 99, 1);\n"
        for at in range(12)
    )
    statements = parse(text)
    assert [one.conditional for one in statements] == [at % 3 > 0 for at in range(12)]
    assert [one.name for one in statements] == [f"q{at}" for at in range(12)]
    assert [one.plan.inside.minx for one in statements] == list(map(float, range(12)))


def test_the_words_are_completed():
    assert "IF NOT EXISTS" in expected_after("REGISTER QUERY ").words
    assert "IF EXISTS" in expected_after("DROP AREA ").words
    assert "EXISTS" in expected_after("DROP QUERY IF ").words


def test_a_client_follows_what_is_there_already(home: Home):
    client = HomeClient(home, streams=STREAMS, owner="me", poll_s=0.01)
    text = (
        "REGISTER QUERY IF NOT EXISTS q_$1 AS SELECT * FROM cars INSIDE (0, 0, $1, 1)"
    )
    first = client.register(text.replace("$1", "2"))
    again = client.register(text.replace("$1", "2"))
    assert first.id == again.id == ("q_2", 1)
    both = client.register_all(text, [{"n": 1}, {"n": 2}, {"n": 3}])
    assert [one.id for one in both] == [("q_1", 1), ("q_2", 1), ("q_3", 1)]
