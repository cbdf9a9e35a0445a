"""One flipped bit in any file of a home is found, or harmless: never a silent wrong answer (SPEC S2)."""

import asyncio
import random
import shutil
from contextlib import aclosing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common import tables
from st_common.answers.answers import answer
from st_common.cli import app
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import load_streams
from st_common.engine.recovery import damage_of
from st_common.log.control import write_end
from st_common.log.log import Log
from st_common.log.log_purging import purge_records
from st_common.query.area_store import areas
from st_common.query.created_streams import created_streams
from st_common.sources.offsets import Offsets
from st_common.sources.registry import source_of
from st_common.sources.writer import Writer
from st_common.tables.durable import log_name
from tests.kit.log_writer import bare_log

pytestmark = pytest.mark.spec("S2")

CONF = """
[streams.grid]
format = "csv"
crs = "planar"
time_unit = "s"
engine = "local"
max_ahead_s = "off"
attributes = { speed = "double" }
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
"""
SOURCE = """
[streams.grid.sources.drop]
kind = "files"
path = "{}/*.csv"
"""
QUERIES = """
CREATE AREA yard AS (0, 0, 5, 5);
CREATE STREAM shadow AS SELECT * FROM grid INSIDE yard;
REGISTER QUERY west AS SELECT * FROM grid WHERE speed > 3 INSIDE (0, 0, 5, 5);
REGISTER QUERY counted AS SELECT COUNT(*) FROM grid INSIDE (0, 0, 9, 9)
"""
TABLES = ("changes", "positions")


def fairway(root: Path, *args: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["--home", str(root), *args], prog_name="fairway")
    assert done.exit_code == code, done.output
    return done.output


def arrive(root: Path, first: int, count: int) -> None:
    log = bare_log(Home(root).log("grid"))
    for step in range(first, first + count):
        fixes = [f"o{n},{step},{(step * (n + 3)) % 11},1,{n}" for n in range(5)]
        body = "\n".join(["id,t,x,y,speed", *fixes, "broken,x", ""])
        log.append(body.encode(), arrival_us=step)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that ran three times: so it has tables of several files, states of several places, rejects."""
    root = tmp_path_factory.mktemp("flipped") / "home"
    (root / "conf").mkdir(parents=True)
    drop = tmp_path_factory.mktemp("drop")
    conf = root / "conf" / "streams.toml"
    conf.write_text(CONF + SOURCE.format(drop))
    (root / "queries.sql").write_text(QUERIES)
    fairway(root, "query", "register", str(root / "queries.sql"))
    for first in (0, 10, 20):
        arrive(root, first, 10)
        fairway(root, "run", "grid", "--until-idle")
    (drop / "a.csv").write_text("id,t,x,y,speed\nf,31,1,1,9\n")
    capture(root, load_streams(conf)["grid"])
    # Else the stream is live, and each run may write what time it is.
    write_end(bare_log(Home(root).log("grid")), arrival_us=31)
    fairway(root, "run", "grid", "--until-idle")
    fairway(root, "capture", "shadow")
    return root


def capture(root: Path, stream: StreamSettings) -> None:
    """Stores what the files of its source have now."""
    writer = Writer(Home(root), stream, "drop", clock=lambda: 31)
    source = source_of(stream.sources["drop"], stream)
    source.begin(writer.places.read())

    async def look() -> None:
        async with aclosing(source.look()) as arrivals:
            async for one in arrivals:
                writer.write([one])

    asyncio.run(look())


def told(root: Path) -> list[object]:
    """What a home says: its tables, and the answers of its queries."""
    home = Home(root)
    order = {
        "changes": [("position", "ascending"), ("seq", "ascending")],
        "positions": [("segment", "ascending"), ("row", "ascending")],
    }
    rows = [
        tables.read(home.table(name, "grid")).sort_by(order[name]) for name in TABLES
    ]
    registered = areas(home), created_streams(home)
    answers = (answer(home, name).to_pylist() for name in ("west", "counted"))
    return [*rows, *answers, *registered, Offsets(Log(home.log("grid")), "drop").read()]


def flip(path: Path, draw: random.Random) -> None:
    content = bytearray(path.read_bytes())
    at = draw.randrange(len(content) * 8)
    content[at // 8] ^= 1 << at % 8
    path.write_bytes(content)


CHANGES_NOTHING = {"conf", "queries.sql"}  # what people write, and look at


def kind_of(name: Path) -> str:
    """What kind a file of a home is: of each some are tried."""
    folder = "/".join(part for part in name.parts[:-1] if not part.isdigit())
    return f"{folder}/{name.suffix}"


def is_found_or_harmless(root: Path, before: list[object]) -> bool:
    """Whether doctor finds what is wrong with a home, an engine refuses it in a line, or it says what it said."""
    if any(problems for _, problems in damage_of(Home(root))):
        return True
    if told(root) != before:
        return False
    done = CliRunner().invoke(
        app, ["--home", str(root), "run", "grid", "--until-idle"], prog_name="fairway"
    )
    if done.exit_code:
        return len(done.output.strip().splitlines()) == 1
    return told(root) == before


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_flipped_bit_of_any_file_is_found_or_harmless(
    whole: Path, tmp_path: Path, seed: int
):
    draw, before = random.Random(seed), told(whole)
    names = [path.relative_to(whole) for path in sorted(whole.rglob("*"))]
    kinds: dict[str, list[Path]] = {}
    for name in names:
        path = whole / name
        if name.parts[0] not in CHANGES_NOTHING and path.is_file():
            kinds.setdefault(kind_of(name), []).extend(
                [name] * (path.stat().st_size > 0)
            )
    silent = []
    for kind, files in sorted(kinds.items()):
        for name in draw.sample(files, min(2, len(files))):
            copy = tmp_path / "copy"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(whole, copy)
            tables_of(copy)
            flip(copy / name, draw)
            if not is_found_or_harmless(copy, before):
                silent.append((kind, str(name)))
    assert len(kinds) > 15
    assert silent == []


def tables_of(root: Path) -> None:
    """Tables that are copied over others may have the same inodes."""
    for log in (root / "tables").rglob("_delta_log"):
        tables.forget(log.parent)


@pytest.mark.parametrize("kind", ["data", "commit", "checkpoint"])
@pytest.mark.parametrize("table", TABLES)
def test_a_changed_table_is_found_and_written_again_from_the_log(
    whole: Path, tmp_path: Path, kind: str, table: str
):
    root, before = tmp_path / "home", told(whole)
    shutil.copytree(whole, root)
    tables_of(root)
    path = root / "tables" / table / "grid"
    if kind == "checkpoint":
        tables.checkpoint(path)
    pattern = {
        "data": "event_date*/*.parquet",
        "commit": "_delta_log/*1.json",
        "checkpoint": "_delta_log/*.parquet",
    }[kind]
    victim = max(path.glob(pattern))
    flip(victim, random.Random(1))
    said = fairway(root, "doctor", code=1)
    assert f"tables/{table}/grid" in said
    assert victim.name in said
    mended = fairway(root, "doctor", "--repair")
    assert victim.name in "".join(
        line for line in mended.splitlines() if line.startswith("MENDED")
    )
    fairway(root, "run", "grid", "--until-idle")
    assert told(root) == before
    assert "WRONG" not in fairway(root, "verify")


@pytest.mark.parametrize("version", [0, 1, 2], ids=["first", "second", "third"])
@pytest.mark.parametrize("table", TABLES)
def test_a_version_that_is_lost_below_others_is_named_and_written_again_from_the_log(
    whole: Path, tmp_path: Path, version: int, table: str
):
    root, before = tmp_path / "home", told(whole)
    shutil.copytree(whole, root)
    tables_of(root)
    victim = root / "tables" / table / "grid" / "_delta_log" / log_name(version)
    victim.unlink()
    refused = fairway(root, "run", "grid", "--until-idle", code=2)
    assert f"version {version} in its log is missing" in refused
    assert "fairway doctor --repair" in refused
    assert f"{victim.name} is missing" in fairway(root, "doctor", code=1)
    assert f"{victim.name} is missing" in fairway(root, "doctor", "--repair")
    fairway(root, "run", "grid", "--until-idle")
    assert told(root) == before
    assert "WRONG" not in fairway(root, "doctor")


def test_what_the_log_has_no_more_is_not_mended_and_said(whole: Path, tmp_path: Path):
    root = tmp_path / "home"
    shutil.copytree(whole, root)
    log = bare_log(Home(root).log("grid"))
    purge_records(log, log.end())
    for state in (root / "streams/grid/local/states").iterdir():
        state.unlink()
    (victim, *_) = sorted((root / "tables/changes/grid").glob("event_date*/*.parquet"))
    flip(victim, random.Random(1))
    said = fairway(root, "doctor", "--repair", code=1)
    (wrong,) = [line for line in said.splitlines() if line.startswith("WRONG")]
    assert victim.name in wrong
    assert "restore" in wrong


@pytest.mark.parametrize("place", ["home", ".hidden/home"], ids=["plain", "hidden"])
def test_a_changed_layer_is_found_and_cannot_be_mended(
    whole: Path, tmp_path: Path, place: str
):
    root = tmp_path / place
    shutil.copytree(whole, root)
    area = '{"type":"Polygon","coordinates":[[[0,0],[5,0],[5,5],[0,0]]]}'
    feature = f'{{"type":"Feature","properties":{{"id":"a"}},"geometry":{area}}}'
    (root / "l.geojson").write_text(
        f'{{"type":"FeatureCollection","features":[{feature}]}}'
    )
    fairway(root, "layer", "load", "parks", str(root / "l.geojson"))
    assert "WRONG" not in fairway(root, "doctor")
    (victim, *_) = (root / "tables/layers/parks").rglob("*/*.parquet")
    flip(victim, random.Random(1))
    said = fairway(root, "doctor", "--repair", code=1)
    assert victim.name in said
    assert "restore it from a backup" in said


@pytest.mark.parametrize(
    "name",
    [
        "streams/grid/log/captures/drop.json",
        "registry/areas.jsonl",
        "registry/streams.jsonl",
    ],
    ids=["places", "areas", "streams"],
)
def test_any_bit_of_a_small_record_counts(whole: Path, tmp_path: Path, name: str):
    root = tmp_path / "home"
    shutil.copytree(whole, root)
    content, draw = (root / name).read_bytes(), random.Random(1)
    for at in draw.sample(range(content.index(b',"crc32"') * 8), 60):
        flipped = bytearray(content)
        flipped[at // 8] ^= 1 << at % 8
        (root / name).write_bytes(flipped)
        assert any(problems for _, problems in damage_of(Home(root))), bytes(flipped)
