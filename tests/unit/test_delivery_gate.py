"""A delivery with `after_quality` lets changes of good days go, in their order, and no others (SPEC C8)."""

import shutil
import threading
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from st_common.answers.changes import stream_changes
from st_common.cli import app
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.controls.rows import Register
from st_common.controls.writing import to_bytes
from st_common.delivery.deliver import deliver
from st_common.delivery.message import change_ids
from st_common.delivery.settings import DeliverySettings
from st_common.delivery.webhook import WebhookSink
from st_common.engine.local import LocalEngine
from st_common.operations.alerts import read_alerts
from st_common.operations.status import read_status
from st_common.quality.finding import DAY_IS_CLOSED, Finding
from st_common.quality.record import record, release
from st_common.query.plan import Box, Plan
from tests.kit.effort import tries
from tests.kit.http_receiver import http_receiver
from tests.kit.log_writer import bare_log

pytestmark = [pytest.mark.spec("C8"), pytest.mark.spec("X7")]

STREAM = StreamSettings(
    name="s",
    format="csv",
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
    crs="planar",
    time_unit="s",
    max_ahead_s=None,
)
FIRST = date(2024, 3, 9)
CONF = """
[streams.s]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
"""


def told(home: Home, days: int) -> None:
    """A stream in which each object crosses a border on each of some days."""
    log = bare_log(home.log("s"))
    plan = Plan(stream="s", inside=Box(minx=0, miny=0, maxx=5, maxy=5)).to_json()
    row = Register(query="q", version=1, plan=plan, text="", owner="")
    log.append(to_bytes(row), arrival_us=0, control=True)
    for day in range(days):
        start_s = int(datetime.combine(FIRST, datetime.min.time(), UTC).timestamp())
        at_s = start_s + day * 86_400
        lines = [f"{name},{at_s + 3600},{9 * (day % 2)},1" for name in "abc"]
        body = "\n".join(["id,t,x,y", *lines, ""])
        log.append(body.encode(), arrival_us=0)
    engine = LocalEngine(home, STREAM)
    while engine.batch():
        pass
    engine.close()


def judge(home: Home, day: date, verdict: str) -> None:
    """What a report says of a day: good, bad (a rule of severity error is broken), warned, or open."""
    severity = {"bad": "error", "warned": "warning"}.get(verdict)
    common = {"observed": 1.0, "expected": "as promised", "rows": 1}
    findings = [
        Finding(
            table="data/s",
            rule=DAY_IS_CLOSED,
            severity="warning",
            passed=verdict != "open",
            **common,
        ),
        Finding(
            table="positions/s",
            rule="volume",
            severity=severity or "error",
            passed=severity is None,
            **common,
        ),
    ]
    record(home, day, findings, checked_us=1)


def gated(url: str) -> DeliverySettings:
    sink = WebhookSink(url=url)
    return DeliverySettings(
        name="d", stream="s", sink=sink, after_quality=True, batch_rows=4
    )


DAYS = 4


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A stream of some days that nobody has judged."""
    home = Home(tmp_path_factory.mktemp("made") / "home")
    told(home, DAYS)
    return home


VERDICTS = st.sampled_from(["good", "bad", "warned", "open", "unjudged"])


@tries(6)
@given(
    verdicts=st.lists(VERDICTS, min_size=DAYS, max_size=DAYS),
    released=st.sets(st.integers(0, DAYS - 1)),
)
def test_what_goes_is_all_before_the_first_day_that_may_not(
    made: Home, tmp_path_factory: pytest.TempPathFactory, verdicts, released
):
    home = Home(tmp_path_factory.mktemp("copy") / "home")
    shutil.copytree(made.root, home.root)
    changes = stream_changes(home, "s")
    days = [each.date() for each in changes["event_ts"].to_pylist()]
    ids = change_ids(changes).to_pylist()
    allowed = set()
    for number, verdict in enumerate(verdicts):
        day = FIRST + timedelta(days=number)
        if verdict != "unjudged":
            judge(home, day, verdict)
        if number in released:
            release(home, "s", day, "it may", checked_us=1)
        if verdict in ("good", "warned") or number in released:
            allowed.add(day)
    judge(home, FIRST + timedelta(days=DAYS), "good")
    expected = next((n for n, day in enumerate(days) if day not in allowed), len(days))
    with http_receiver() as receiver:
        for _ in range(2):
            deliver(home, gated(receiver.url), until_idle=True)
            assert [each["id"] for each in receiver.taken] == ids[:expected]
        status = read_status(home.delivery("d"))
        assert (status.state == "held") == (expected < len(days))
        for number in range(DAYS):
            judge(home, FIRST + timedelta(days=number), "good")
        deliver(home, gated(receiver.url), until_idle=True)
        assert [each["id"] for each in receiver.taken] == ids


def test_a_delivery_that_runs_waits_and_goes_on_when_the_day_is_released(
    tmp_path: Path,
):
    home = Home(tmp_path)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(CONF)
    told(home, 1)
    count = len(stream_changes(home, "s"))
    judge(home, FIRST, "bad")
    with http_receiver() as receiver:
        given = (home, gated(receiver.url))
        running = threading.Thread(target=lambda: deliver(*given, until_idle=False))
        running.start()
        try:
            wait_for(
                lambda: [each for each in read_alerts(home) if "held" in each.text]
            )
            assert receiver.taken == []
            words = ["quality", "release", "s", "--day", str(FIRST), "--why", "it may"]
            done = CliRunner().invoke(app, ["--home", str(tmp_path), *words])
            assert done.exit_code == 0, done.output
            wait_for(lambda: len(receiver.taken) == count)
        finally:
            (home.delivery("d") / "stop").touch()
            running.join()
    (alert,) = (each for each in read_alerts(home) if "held" in each.text)
    assert f"{FIRST} breaks its contract" in alert.text


def wait_for(holds) -> None:
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
