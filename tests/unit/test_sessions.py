"""Sessions: what an object did since it paused; contents found on paper, told by brute force and by the step."""

import numpy as np
import pytest

from st_common.query.builder import query
from st_common.query.frame import Extent, Frame, Sliding
from st_common.query.frame_checks import complaints_of_frame
from st_common.query.plan import Plan
from st_common.query.text import TextError, parse, to_text
from st_common.reference import sessions
from st_common.reference.travelled import Ways
from tests.kit.by_hand import clock, end, fix, gone, log, register
from tests.kit.oracle import Rules
from tests.kit.telling import by_brute_force, by_steps

COUNT = "SELECT object, COUNT(*) AS n FROM s [SESSION 10 s] GROUP BY object"


@pytest.fixture(params=(by_brute_force, by_steps), ids=("oracle", "step"))
def tell(request):
    def told(text, *rows, **rules):
        steps = log(register("q", plan_of(text)), *rows)
        changes = request.param(steps, Rules(tick_us=1_000_000, **rules), None)
        return [
            (one.event_us / 1e6, "- +"[one.sign + 1] + one.object, one.value, one.cause)
            for one in changes
        ]

    return told


def plan_of(text):
    (statement,) = parse(f"REGISTER QUERY q AS {text}")
    return statement.plan


@pytest.mark.spec("X12")
def test_a_session_grows_with_its_fixes_and_ends_as_a_whole(tell):
    told = tell(
        "SELECT * FROM s [SESSION 10 s]",
        fix("a", 0),
        fix("a", 7),
        fix("a", 17),  # a pause as long as allowed
        fix("b", 20),
        fix("a", 31),
        end(),
    )
    assert [(at, who) for at, who, _, _ in told if who[1] == "a"] == [
        (0, "+a"),
        (7, "+a"),
        (17, "+a"),
        *[(28, "-a")] * 3,  # the first tick more than 10 s after the last of it
        (31, "+a"),
    ]
    assert {cause for _, who, _, cause in told if who[0] == "-"} == {"aged"}


@pytest.mark.spec("X12")
def test_values_of_a_session_are_told_last_when_it_is_over(tell):
    rows = (fix("a", 0), fix("a", 7), fix("b", 9), clock(40), end())
    changes = tell(COUNT, *rows)
    told = [row[:2] for row in changes]
    assert told == [
        (0, "+a"),
        (7, "-a"),
        (7, "+a"),
        (9, "+b"),
        (18, "-a"),
        (20, "-b"),
    ]
    causes = {
        (who, cause) for at, who, _, cause in changes if who[0] == "-" and at < 10
    }
    assert causes == {("-a", "value")}
    assert {cause for at, who, _, cause in changes if at > 10} == {"leave"}


@pytest.mark.spec("X12")
def test_only_fixes_that_count_hold_a_session_together(tell):
    text = "SELECT COUNT(*) FROM s [SESSION 10 s] WHERE load > 2"
    rows = [fix("a", at, load=load) for at, load in ((0, 5), (6, 1), (12, 5))]
    assert [row[:3] for row in tell(text, *rows, end())] == [
        (0, "+*", 1.0),
        (11, "-*", 1.0),
        (11, "+*", 0.0),
        (12, "-*", 0.0),
        (12, "+*", 1.0),
    ]


@pytest.mark.spec("X12")
def test_who_is_gone_for_less_than_the_pause_goes_on_with_its_session(tell):
    told = tell(
        "SELECT TRAVELLED(*) AS way_m, COUNT(*) AS n, object FROM s [SESSION 10 s] GROUP BY object",
        fix("a", 0, x=0),
        fix("a", 2, x=30),
        gone("a", 3),
        fix("a", 8, x=100),  # nobody knows how it came there
        fix("a", 9, x=140),
        end(),
    )
    assert [row[0] for row in told] == sorted(row[0] for row in told)
    assert told[-1][:2] == (9, "+a")


@pytest.mark.spec("X12")
def test_a_fix_that_comes_after_its_session_was_over_begins_another(tell):
    """The clock has passed the end of the session that it would have gone on with."""
    rows = (fix("a", 0), fix("b", 15), fix("a", 9), fix("b", 16), end())
    told = [row[:3] for row in tell(COUNT, *rows) if row[1][1] == "a"]
    assert told == [
        (0, "+a", 1.0),
        (11, "-a", 1.0),
        (15, "+a", 1.0),  # of itself alone
    ]


@pytest.mark.spec("X12")
def test_the_text_is_the_plan_and_the_builder_says_the_same():
    plan = plan_of(
        "SELECT * FROM s [SESSION 10 min] [RANGE BY (0, 0, 9, 9) RATTR SPACE]"
    )
    assert plan.frame is not None
    assert plan.frame.session_s == 600
    assert plan_of(to_text(plan, "q").partition(" AS ")[2]) == plan
    assert query("s").session("10 min").fixes_in((0, 0, 9, 9)).build() == plan
    assert Plan.from_json(plan.to_json()) == plan


@pytest.mark.spec("X12")
@pytest.mark.parametrize(
    ("windows", "message"),
    [
        ("[SESSION 10 min] [SESSION 5 min]", "beside no other window"),
        ("[ROWS 4] [SESSION 10 min]", "beside no other window"),
        ("[SESSION 10]", "a time with its unit"),
        ("[SESSION 0 s]", "a pause is at least a microsecond"),
        ("[SESSION 10 min, SLIDE 5 min]", "expected ']'"),
        ("[SESSION 1 min] WITH (windows = 'full')", "not for sessions"),
    ],
)
def test_what_a_session_cannot_be_is_refused(windows, message):
    with pytest.raises(TextError, match=message):
        plan_of(f"SELECT * FROM s {windows}")


@pytest.mark.spec("X12")
@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (Frame(session_s=0.0), "ends no session"),
        (Frame(session_s=9.0, full=True), "not for sessions"),
        (
            Frame(session_s=9.0, sliding=(Sliding(range=Extent(by="rows", amount=3)),)),
            "beside no window",
        ),
    ],
)
def test_a_plan_from_elsewhere_is_checked_alike(frame, message):
    found = list(complaints_of_frame(frame))
    assert any(message in one.message for one in found)


def test_the_reference_knows_which_sessions_are_open():
    event_us = np.array([0, 7, 15, 31, 3]) * 1_000_000
    ways = Ways(
        ids=np.array(["a", "a", "a", "a", "b"], object),
        event_us=event_us,
        tick=event_us,
        begins=np.zeros(5, bool),
        number=np.array([1, 2, 3, 4, 1]),
        way_um=np.zeros(5, np.int64),
    )
    rows = np.ones(5, bool)

    def open_at(now_s, known=rows):
        return sessions.in_session(
            10.0, ways, known, now=now_s * 1_000_000, tick_us=1_000_000
        ).tolist()

    assert open_at(35) == [False, False, False, True, False]
    assert open_at(41) == [False, False, False, True, False]
    assert open_at(42) == [False] * 5
    assert open_at(25, rows & (event_us < 31_000_000)) == [
        True,
        True,
        True,
        False,
        False,
    ]
