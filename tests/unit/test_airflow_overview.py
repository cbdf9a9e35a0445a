"""What Airflow's page shows of a home: from files alone, without secrets, also where nothing is yet."""

from pathlib import Path

import pytest

from st_common.airflow.overview import overview
from st_common.answers.templates import templates_in
from st_common.config.home import Home
from st_common.operations.alerts import Alert, alerts_file
from st_common.operations.records import append_record
from st_common.operations.status import StreamStatus, write_status
from st_common.processes import supervise

PAGES = Path(__file__).resolve().parents[2] / "st_common" / "airflow" / "pages"
MINUTE = 60_000_000


def rendered(home: Home, *, now_us: int) -> str:
    content = overview(home, now_us=now_us)
    return templates_in(PAGES).get_template("overview.html").render(shown=content)


def test_a_new_home_says_what_to_do(tmp_path: Path) -> None:
    page = rendered(Home(tmp_path), now_us=0)
    assert "unpause the DAG stream_supervisor" in page
    assert "none yet" in page


@pytest.mark.spec("C9")
def test_streams_alerts_and_reports_are_shown_as_they_are(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    conf = home.root / "conf"
    conf.mkdir(parents=True)
    (conf / "streams.toml").write_text(
        '[streams.taxis]\nformat = "csv"\n'
        'columns = { object = "id", event_ts = "t", x = "x", y = "y" }\n'
    )
    assert supervise.main(["--home", str(home.root)]) == 0
    now_us = overview(home, now_us=0).looked_s
    assert now_us == 0, "a clock that went back makes nothing negative"
    status = StreamStatus(
        state="running", beat_ts=5 * MINUTE, position=3, end_position=3, fixes=12_345
    )
    write_status(home.stream("taxis"), status)
    append_record(
        alerts_file(home),
        vars_of(Alert(ts=1_000_001, stream="taxis", level="error", text="<b>dead</b>")),
    )
    for name in ("quality/2024-03-09.html", "regions/g.html"):
        path = home.reports / name
        path.parent.mkdir(parents=True)
        path.touch()

    shown = overview(home, now_us=6 * MINUTE)
    (health, (job,)) = shown.streams["taxis"]
    assert (health, job.age_s, job.status.fixes) == ("stopped", 60, 12_345)
    assert shown.reports == {
        "quality": ["quality/2024-03-09.html"],
        "regions": ["regions/g.html"],
    }
    page = rendered(home, now_us=6 * MINUTE)
    assert "12,345" in page
    assert "1970-01-01 00:00:01" in page
    assert "&lt;b&gt;dead&lt;/b&gt;" in page
    assert 'href="reports/quality/2024-03-09.html"' in page


def vars_of(alert: Alert) -> dict[str, object]:
    return {
        "ts": alert.ts,
        "stream": alert.stream,
        "level": alert.level,
        "text": alert.text,
    }
