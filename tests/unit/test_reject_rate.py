"""Feeds of which hardly anything can be read are warned of while they run."""

import asyncio

import pytest
from typer.testing import CliRunner

from st_common.cli import app
from st_common.config.home import Home
from st_common.sources.note import read_notes
from st_common.sources.reject_rate import RejectRate
from tests.kit.feeding import (
    capturing,
    stream_with,
    until,
    until_records,
)

pytestmark = pytest.mark.spec("B6")

STREAM = stream_with({"kind": "stdin"})
S = 1_000_000
GOOD, BAD = b"id,t,x,y\na,1,2,3\n", b"id,when,x,y\na,1,2,3\n"


def judged(*samples: tuple[int, bytes]) -> list[str | None]:
    """What a judge says after each sample of a moment (s) and a payload."""
    judge, said = RejectRate(STREAM, "feed"), []
    for at_s, payload in samples:
        judge.look(payload, arrival_us=at_s * S)
        said.append(judge.warning(now_us=at_s * S))
    return said


def test_the_main_reason_a_record_and_the_mend_are_named() -> None:
    (said,) = judged((10, BAD))
    assert said is not None
    assert said.startswith(
        "1 of 1 records that source feed brought are nothing that stream 'ships' can read: mostly missing_column"
    )
    assert said.endswith(
        "(columns in the settings are spelled as in the header; delimiter says what separates them)"
    )


def test_half_of_it_may_be_rejected() -> None:
    header, good, bad = b"id,t,x,y\n", b"a,1,2,3\n", b"a,1,2,x\n"
    assert judged((10, header + good + bad)) == [None]
    (said,) = judged((10, header + good + bad + bad))
    assert said is not None
    assert "mostly bad_number, such as 'a,1,2,x'" in said


def test_one_record_is_no_change_of_mind_and_a_period_of_others_is() -> None:
    ten = GOOD + b"a,1,2,3\n" * 9
    early, few, many = (12, GOOD), (45, GOOD), (48, ten)
    first, still, not_yet, over = judged((10, BAD), early, few, many)
    assert first == still == not_yet
    assert over is None
    # What is looked at in between is not even decoded: samples are 2 s apart.
    assert judged((10, GOOD), (11, BAD * 99), (50, ten)) == [None, None, None]


def test_a_large_payload_is_looked_at_by_its_first_its_middle_and_its_last_records() -> (
    None
):
    good, bad = b"a,1,2,3\n" * 100_000, b"a,1,2,x\n" * 100_000
    (said,) = judged((10, b"id,t,x,y\n" + good + bad + bad))
    assert said is not None
    assert "mostly bad_number" in said
    assert judged((10, b"id,t,x,y\n" + good + good + bad)) == [None]
    judge = RejectRate(STREAM, "feed")
    judge.look(b"id,when,x,y\n" + good, arrival_us=10 * S)
    assert "98,300 of 98,300 records" in str(judge.warning(now_us=10 * S))


def test_a_running_feed_with_a_wrong_column_is_told_of_by_status(tmp_path, caplog):
    home, conf = Home(tmp_path / "home"), tmp_path / "conf"
    source = {"kind": "files", "path": f"{tmp_path}/*.csv", "every_s": 0.1}

    async def run():
        async with capturing(home, stream_with(source)) as capture:
            (tmp_path / "part.csv").write_bytes(BAD)
            await until_records(capture, 1)
            await until(lambda: capture.note.warning is not None)

    asyncio.run(run())
    (note,) = read_notes(home, "ships")
    assert note.warning is not None
    assert caplog.messages == [f"ships: source feed: {note.warning}"]
    conf.mkdir()
    (conf / "streams.toml").write_text(
        """
        [streams.ships]
        format = "csv"
        columns = { object = "id", event_ts = "t", x = "x", y = "y" }
        crs = "planar"
        time_unit = "s"
        """
    )
    places = ["--home", str(home.root), "--conf", str(conf)]
    shown = CliRunner().invoke(app, [*places, "status"])
    assert "source feed (files): 1 records, the last " in shown.stdout
    assert f"; {note.warning}\n" in shown.stdout


def test_a_connection_without_a_header_is_told_so() -> None:
    (said,) = judged((10, b"(no header)\n444,1,2,3\n"))
    assert said is not None
    assert said.endswith("header = false says that there is none)")
