"""The auditor finds what is wrong with what a stream has stored, and says what it did not look at."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import typer

from st_common import tables
from st_common.checks import audit as auditing
from st_common.checks.audit import audit
from st_common.cli import app
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.contracts import load_contract
from st_common.engine.run import run
from st_common.errors import LogError
from st_common.operations.alerts import read_alerts
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.log_writer import bare_log

pytestmark = pytest.mark.spec("S2")
STREAM = StreamSettings(
    name="s",
    format="csv",
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
    crs="planar",
    time_unit="s",
    max_ahead_s=None,
)
QUERIES = """
REGISTER QUERY q AS SELECT * FROM s INSIDE (0, 0, 5, 5);
REGISTER QUERY n AS SELECT COUNT(*) FROM s INSIDE (0, 0, 5, 5);
"""


command = typer.main.get_command(app)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = Home(tmp_path_factory.mktemp("audit") / "home")
    register(home, {"s": STREAM}, parse(QUERIES), owner="me")
    log = bare_log(home.log("s"))
    for numbers in (range(6), range(6, 12)):
        for second in numbers:
            place = 1 if second % 2 else 9
            rows = (
                f"a,{second},{place},1\nb,{second},{10 - place},1\nbad,{second},x,1\n"
            )
            log.append(f"id,t,x,y\n{rows}".encode(), arrival_us=second)
        run(home, STREAM, until_idle=True)
    return home.root


@pytest.fixture
def home(ran: Path, tmp_path: Path) -> Home:
    shutil.copytree(ran, tmp_path / "home")
    return Home(tmp_path / "home")


def _problems(home: Home) -> list[str]:
    return [found.problem for found in audit(home, STREAM) if found.problem]


def test_a_control_row_that_nobody_knows_is_found(home):
    log = bare_log(home.log("s"))
    number = log.append(b'{"op":"pause"}\n', arrival_us=99, control=True).number
    (problem,) = _problems(home)
    assert f"segment {number} of stream s: row 1" in problem
    assert '"pause"' in problem


def _rewritten(home: Home, changes: pa.Table) -> None:
    """The table with other rows and the same place in the log: what a faulty engine would leave behind."""
    path = home.table("changes", "s")
    committed = tables.committed(path, "engine")
    shutil.rmtree(path)
    tables.append(
        path, changes, load_contract("changes"), app="engine", version=committed
    )


def test_what_fits_together_holds_and_says_how_much_was_done_once_more(
    home: Home,
) -> None:
    found = list(audit(home, STREAM))
    assert [one.problem for one in found] == [None] * len(found)
    assert [one.unchecked for one in found if one.unchecked] == []
    assert found[-1].what == "positions and rejects: 36 records of segments 0 to 12"


def test_what_was_not_done_once_more_is_said(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auditing, "REPLAY_BYTES", 300)
    assert [one.unchecked for one in audit(home, STREAM) if one.unchecked] == [
        "segments before 7"
    ]
    assert _problems(home) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            lambda rows: pa.concat_tables([rows, rows.slice(0, 1)]),
            "1 rows, the first at position",
        ),
        (
            lambda rows: rows.filter(
                pc.not_equal(rows["position"], rows["position"][4])
            ),
            "the table has",
        ),
        (
            lambda rows: rows.filter(pc.greater(rows["position"], rows["position"][3])),
            "stands -1 times in the answer",
        ),
    ],
    ids=["a row twice", "a row lost", "the first rows lost"],
)
def test_rows_that_are_lost_or_doubled_are_found(
    home: Home, change, problem: str
) -> None:
    rows = tables.read(home.table("changes", "s")).sort_by(
        [("position", "ascending"), ("seq", "ascending")]
    )
    _rewritten(home, change(rows))
    assert any(problem in found for found in _problems(home)), _problems(home)


def test_a_value_that_was_changed_is_found(home: Home) -> None:
    rows = tables.read(home.table("changes", "s"))
    values = pc.if_else(
        pc.equal(rows["position"], pc.max(rows["position"])), 77.0, rows["value"]
    )
    _rewritten(home, rows.set_column(rows.column_names.index("value"), "value", values))
    assert any(
        "rows differ, the first at position" in found for found in _problems(home)
    )


def test_a_flipped_bit_of_the_log_is_found(home: Home) -> None:
    path = home.log("s") / "segments" / "00000000" / "000000000002.seg"
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    path.write_bytes(bytes(data))
    assert "its bytes were changed" in next(iter(audit(home, STREAM))).problem


def test_a_data_file_that_is_gone_is_found(home: Home) -> None:
    next(home.table("positions", "s").glob("**/*.parquet")).unlink()
    assert any(
        "is missing, cut or changed" in found.problem
        for found in audit(home, STREAM)
        if found.problem
    )


def test_fixes_that_the_archive_lost_are_found(home: Home) -> None:
    path = home.table("positions", "s")
    rows, committed = tables.read(path), tables.committed(path, "archive-s")
    shutil.rmtree(path)
    tables.append(
        path,
        rows.slice(1),
        load_contract("positions"),
        app="archive-s",
        version=committed,
    )
    assert _problems(home) == ["23 fixes and 12 rejects instead of 24 and 12"]


def test_a_segment_that_was_given_up_is_passed_over_and_named_ever_after(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    conf = home.root / "conf"
    conf.mkdir()
    (conf / "streams.toml").write_text(
        '[streams.s]\nformat = "csv"\ncrs = "planar"\ntime_unit = "s"\nmax_ahead_s = "off"\n'
        'columns = { object = "id", event_ts = "t", x = "x", y = "y" }\n'
    )
    path = home.log("s") / "segments" / "00000000" / "000000000013.seg"
    log = bare_log(home.log("s"))
    log.append(b"id,t,x,y\na,50,1,1\n", arrival_us=1)
    log.append(b"id,t,x,y\nb,51,1,1\n", arrival_us=1)
    path.write_bytes(path.read_bytes()[:70])
    with pytest.raises(LogError, match=r"13\.seg is damaged"):
        run(home, STREAM, until_idle=True)
    command.main(
        ["--home", str(home.root), "streams", "skip", "s", "13", "--why", "no copy"],
        standalone_mode=False,
    )
    assert (
        capsys.readouterr().out == "s: segment 13 of its log is passed over: no copy\n"
    )
    assert run(home, STREAM, until_idle=True).fixes == 1
    log_of = next(iter(audit(home, STREAM)))
    assert (
        log_of.problem,
        log_of.unchecked.startswith("what is passed over: segment 13 ("),
    ) == (None, True)
    assert _problems(home) == []
    assert "segment 13 of its log is passed over: no copy" in [
        alert.text for alert in read_alerts(home)
    ]
