"""The sink `file`: whole lines, in order, at least once, whatever kills the deliverer or fills the disk."""

import json
import random
import re
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.answers.changes import stream_changes
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.contracts import load_contract
from st_common.delivery import files as files_module
from st_common.delivery.deliver import deliver
from st_common.delivery.files import FileSink
from st_common.delivery.message import change_ids, messages
from st_common.delivery.outcome import Failed, Taken
from st_common.delivery.settings import load_deliveries
from st_common.engine.local import LocalEngine
from st_common.errors import ConfigError
from st_common.query.plan import Box, Plan
from tests.kit.log_writer import bare_log

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = load_contract("changes").arrow_schema()
STREAMS = """
[streams.taxis]
format = "csv"
time_unit = "s"
max_ahead_s = "off"
crs = "planar"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
"""
SECTION = re.search(
    r"^## Files\n(.*?)^## ",
    (ROOT / "docs" / "delivery.md").read_text(encoding="utf-8"),
    re.DOTALL | re.MULTILINE,
)[1]
NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


def example(language: str) -> str:
    return re.search(rf"```{language}\n(.*?)```", SECTION, re.DOTALL)[1]


def batch(first: int, number: int):
    rows = [
        {
            "position": position,
            "seq": 0,
            "event_ts": position,
            "query": "q",
            "query_version": 1,
            "sign": 1,
            "object": f"Zoë {position}",
            "cause": "enter",
            "event_date": 0,
        }
        for position in range(first, first + number)
    ]
    return messages(pa.Table.from_pylist(rows, schema=SCHEMA), "s")


def opened(root: Path, delivery: str = "d", **more: object):
    return FileSink(path="out", **more).receiver(delivery, Home(root))


def sent(root: Path, *batches, **more: object) -> None:
    files = opened(root, **more)
    for some in batches:
        assert files.send(some) == Taken()
    files.close()


def written(root: Path, delivery: str = "d", path: str = "out") -> list[Path]:
    return sorted((root / "files" / path).glob(f"{delivery}.*.ndjson"))


def lines_of(paths: list[Path]) -> list[bytes]:
    return b"".join(path.read_bytes() for path in paths).splitlines()


def prepare(folder: Path) -> Home:
    (folder / "conf").mkdir(parents=True)
    (folder / "conf" / "streams.toml").write_text(STREAMS)
    (folder / "conf" / "deliveries.toml").write_text(example("toml"))
    home = Home(folder)
    log = bare_log(home.log("taxis"))
    for number in range(3):
        plan = Plan(stream="taxis", inside=Box(minx=0, miny=0, maxx=3 + number, maxy=5))
        row = {
            "op": "register",
            "query": f"q{number}",
            "version": 1,
            "plan": plan.to_json(),
            "text": "",
            "owner": "t",
        }
        log.append(json.dumps(row).encode(), arrival_us=0, control=True)
    lines = [f"o{n % 17},{n},{(n * 7) % 10},1" for n in range(700)]
    for start in range(0, 700, 50):
        part = ["id,t,x,y", *lines[start : start + 50], ""]
        log.append("\n".join(part).encode(), arrival_us=0)
    return home


def engine_of(home: Home) -> LocalEngine:
    return LocalEngine(home, load_streams(home.root / "conf")["taxis"])


def run_engine(home: Home) -> list[str]:
    """Runs the engine to the end of the log; gives the ids of all changes."""
    engine = engine_of(home)
    while engine.batch():
        pass
    engine.close()
    return change_ids(stream_changes(home, "taxis")).to_pylist()


def ids_of(paths: list[Path]) -> list[str]:
    return [json.loads(line)["id"] for line in lines_of(paths)]


def first_times(ids: list[str]) -> list[str]:
    return list(dict.fromkeys(ids))


@pytest.mark.spec("X7")
def test_the_example_of_the_page_reads_every_change_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    home = prepare(tmp_path / "home")
    ids = run_engine(home)
    delivery = load_deliveries(home.root / "conf", ["taxis"])["archive"]
    done = deliver(home, delivery, until_idle=True)
    assert (done.to, done.delivered, done.dead_letters) == ("file", len(ids), 0)
    (home.delivery("archive") / "progress.json").unlink()
    deliver(home, delivery, until_idle=True)
    paths = written(home.root, "archive", "exports/archive")
    assert ids_of(paths) == ids + ids
    names: dict[str, object] = {}
    exec(example("python"), names)
    assert [change["id"] for change in names["changes"]] == ids


def test_a_line_is_what_a_webhook_gets(tmp_path):
    some = batch(0, 3)
    sent(tmp_path, some)
    assert lines_of(written(tmp_path)) == some.lines


def test_a_file_that_has_reached_its_size_is_left(tmp_path):
    batches = [batch(5 * number, 5) for number in range(12)]
    limit = 3 * sum(len(line) + 1 for line in batches[0].lines) - 50
    sent(tmp_path, *batches, rotate_mb=limit / 1e6)
    paths = written(tmp_path)
    assert lines_of(paths) == [line for some in batches for line in some.lines]
    sizes = [path.stat().st_size for path in paths]
    assert len(sizes) == 4
    assert all(limit <= size < 2 * limit for size in sizes)


def test_a_file_that_is_large_stays_when_it_may(tmp_path):
    sent(tmp_path, batch(0, 50), batch(50, 50), rotate_mb=None)
    assert len(written(tmp_path)) == 1


@pytest.mark.parametrize("again", [False, True])
def test_a_new_day_begins_a_file_and_a_clock_put_back_none(
    tmp_path, monkeypatch, again
):
    hours = [0, 11, 13, 14, 2, 40]
    files = opened(tmp_path)
    for number, hour in enumerate(hours):
        now = NOON + timedelta(hours=hour)
        monkeypatch.setattr(files_module, "_now", lambda now=now: now)
        if again:
            files.close()
            files = opened(tmp_path)
        assert files.send(batch(number, 1)) == Taken()
    files.close()
    counts = [len(lines_of([path])) for path in written(tmp_path)]
    assert counts == [2, 3, 1]
    assert ids_of(written(tmp_path)) == [batch(n, 1).ids[0] for n in range(6)]


def test_a_clock_put_back_keeps_names_in_order(tmp_path, monkeypatch):
    for number in range(4):
        now = NOON - timedelta(hours=number)
        monkeypatch.setattr(files_module, "_now", lambda now=now: now)
        sent(tmp_path, batch(number, 1), rotate_mb=1e-6)
    assert len(written(tmp_path)) == 4
    assert ids_of(written(tmp_path)) == [batch(n, 1).ids[0] for n in range(4)]


def test_without_daily_files_a_day_begins_none(tmp_path, monkeypatch):
    for day in range(3):
        now = NOON + timedelta(days=day)
        monkeypatch.setattr(files_module, "_now", lambda now=now: now)
        sent(tmp_path, batch(day, 1), rotate_daily=False)
    assert len(written(tmp_path)) == 1


@pytest.mark.spec("X6", "X7")
@given(data=st.data())
def test_what_a_kill_or_a_power_cut_leaves_is_whole_lines_again(tmp_path_factory, data):
    root = tmp_path_factory.mktemp("home")
    acknowledged, unknown = batch(0, 3), batch(3, 4)
    sent(root, acknowledged, unknown)
    (path,) = written(root)
    content = path.read_bytes()
    durable = sum(len(line) + 1 for line in acknowledged.lines)
    length = data.draw(st.integers(durable, len(content)), label="length")
    zeros_from = data.draw(st.integers(durable, length), label="zeros_from")
    zeros_to = data.draw(st.integers(zeros_from, length), label="zeros_to")
    torn = bytearray(content[:length])
    torn[zeros_from:zeros_to] = bytes(zeros_to - zeros_from)
    path.write_bytes(torn)
    sent(root, unknown)
    good = len(torn) if zeros_from == zeros_to else zeros_from
    ends = [end for end in range(1, good + 1) if content[end - 1 : end] == b"\n"]
    after = b"".join(line + b"\n" for line in unknown.lines)
    assert path.read_bytes() == content[: ends[-1]] + after


def test_a_full_disk_keeps_whole_lines_and_is_tried_again(tmp_path):
    files = opened(tmp_path)
    assert files.send(batch(0, 2)) == Taken()
    (path,) = written(tmp_path)
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 300, limits[1]))
    try:
        outcome = files.send(batch(2, 9))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert isinstance(outcome, Failed)
    assert str(path.parent) in outcome.reason
    assert path.read_bytes() == before
    assert files.send(batch(2, 9)) == Taken()
    files.close()
    assert ids_of([path]) == batch(0, 11).ids


def test_a_file_that_was_taken_away_acknowledges_nothing(tmp_path):
    files = opened(tmp_path)
    assert files.send(batch(0, 2)) == Taken()
    (path,) = written(tmp_path)
    path.rename(tmp_path / "taken")
    outcome = files.send(batch(2, 2))
    assert isinstance(outcome, Failed)
    assert "was taken away" in outcome.reason
    assert files.send(batch(2, 2)) == Taken()
    files.close()
    assert ids_of(written(tmp_path)) == batch(2, 2).ids
    assert written(tmp_path)[0].name > path.name


def test_two_deliveries_share_a_folder(tmp_path):
    for number, name in enumerate(("d", "d-2", "d", "d-2")):
        files = opened(tmp_path, name)
        assert files.send(batch(number, 1)) == Taken()
        files.close()
    assert ids_of(written(tmp_path, "d")) == [batch(n, 1).ids[0] for n in (0, 2)]
    assert ids_of(written(tmp_path, "d-2")) == [batch(n, 1).ids[0] for n in (1, 3)]


def test_no_link_leads_out_of_the_home(tmp_path):
    root, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    (root / "files").mkdir(parents=True)
    elsewhere.mkdir()
    (root / "files" / "out").symlink_to(elsewhere)
    with pytest.raises(ConfigError, match=r"path 'out' leads out of .*remove the link"):
        opened(root)
    (root / "files" / "out").unlink()
    sent(root, batch(0, 1))
    (path,) = written(root)
    path.rename(elsewhere / path.name)
    path.symlink_to(elsewhere / path.name)
    assert isinstance(opened(root).send(batch(1, 1)), Failed)
    assert ids_of([elsewhere / path.name]) == batch(0, 1).ids


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('path = "../out"', "path = '../out' must be a folder below HOME/files"),
        ('path = "/srv/out"', "path = '/srv/out' must be a folder below HOME/files"),
        ('path = "out/.."', "path = 'out/..' must be a folder below HOME/files"),
        ('path = ".out"', "path = '.out' must be a folder below HOME/files"),
        ('path = ""', "path = '' must be a folder below HOME/files"),
        ("path = 3", "path = 3 must be a folder below HOME/files"),
        ("", "path is missing"),
        ('path = "out"\nrotate_mb = 0', "rotate_mb = 0 must be above 0"),
        ('path = "out"\nrotate_daily = 1', "rotate_daily = 1 must be true or false"),
        ('path = "out"\nurl = "https://a.b"', "url has no meaning for a file"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path, line, message):
    text = f'[deliveries.d]\nstream = "s"\nto = "file"\n{line}\n'
    (tmp_path / "deliveries.toml").write_text(text)
    with pytest.raises(ConfigError, match=re.escape(f"delivery 'd': {message}")):
        load_deliveries(tmp_path, ["s"])


def command(home: Home, *before: str) -> list[str]:
    code = [*before, "from st_common.processes.deliver import main", "main()"]
    options = ["archive", "--home", str(home.root), "--until-idle"]
    return [sys.executable, "-c", "; ".join(code), *options]


def run_to_the_end(home: Home) -> None:
    subprocess.run(
        command(home), cwd=ROOT, check=True, stdout=subprocess.DEVNULL, timeout=120
    )


@pytest.mark.spec("X6", "X7")
@pytest.mark.slow
def test_a_deliverer_killed_in_the_middle_of_a_line_leaves_none(tmp_path):
    """The system itself kills the writer at a byte: at a limit on the size of files, by SIGXFSZ."""
    home = prepare(tmp_path)
    ids = run_engine(home)
    limited = (
        "import resource, signal",
        "signal.signal(signal.SIGXFSZ, signal.SIG_DFL)",
        "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))",
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_123, 100_123))",
    )
    died = subprocess.run(
        command(home, *limited), cwd=ROOT, capture_output=True, timeout=120, check=False
    )
    (torn,) = written(home.root, "archive", "exports/archive")
    assert died.returncode < 0
    assert torn.stat().st_size == 100_123
    assert not torn.read_bytes().endswith(b"\n")
    run_to_the_end(home)
    paths = written(home.root, "archive", "exports/archive")
    assert first_times(ids_of(paths)) == ids


@pytest.mark.spec("X6", "X7")
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_deliverer_killed_again_and_again_loses_nothing(tmp_path):
    chance, kills = random.Random(5), 0
    home = prepare(tmp_path)
    conf = home.root / "conf" / "deliveries.toml"
    conf.write_text(example("toml") + "batch_rows = 1\nrotate_mb = 0.02\n")
    ids = run_engine(home)
    folder = home.root / "files" / "exports" / "archive"

    def size() -> int:
        return sum(path.stat().st_size for path in folder.glob("*"))

    for _ in range(6):
        before, end_s = size(), time.monotonic() + 60
        process = subprocess.Popen(command(home), cwd=ROOT, stdout=subprocess.DEVNULL)
        while size() == before and process.poll() is None and time.monotonic() < end_s:
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.02))
        kills += process.poll() is None
        process.kill()
        process.wait(timeout=30)
    assert kills >= 3
    run_to_the_end(home)
    paths = written(home.root, "archive", "exports/archive")
    assert len(paths) > 3
    assert first_times(ids_of(paths)) == ids
    known: dict[str, bytes] = {}
    for line in lines_of(paths):
        assert known.setdefault(json.loads(line)["id"], line) == line
    for one, other in pairwise(paths):
        assert one.stat().st_size >= 20_000
        assert one.name < other.name
