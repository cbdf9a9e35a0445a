"""Formats that other packages bring: found when a stream names one, and refused by the name of the package."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common.cli import app
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.errors import ConfigError
from st_common.formats.registry import format_of
from st_common.log.log import Log
from st_common.log.reader import pieces

pytestmark = pytest.mark.spec("B7")

MODULE = '''
"""Fixes as words: `bus 7 was at 24.9 60.2 in second 1700000000`."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.formats.chunk import Chunk, line_border, whole
from st_common.formats.format import Format
from st_common.formats.records import RAW_LIMIT, Reason, Records, columns_read
from st_common.formats.spans import lines

WORDS = r"^(?P<id>.+) was at (?P<x>\\S+) (?P<y>\\S+) in second (?P<t>\\d+)$"


class Told(Format):
    takes = frozenset({"time_unit"})

    def chunks(self, source, stream, *, size):
        for data in whole(source, b"", size, line_border):
            spans = lines(np.frombuffer(data, np.uint8))
            if len(spans):
                yield Chunk(b"", spans)

    def records(self, payload, stream):
        spans = lines(np.frombuffer(payload, np.uint8))
        said = pc.extract_regex(spans.texts(), WORDS)
        good = said.is_valid()
        fault = np.where(good, Reason.NONE, Reason.UNREADABLE).astype(np.int8)
        said = said.filter(good)
        fields = {n: said.field(n).cast(pa.string()) for n in columns_read(stream)}
        raw = lambda rows: spans.select(rows).texts(RAW_LIMIT)
        return Records(fault=fault, fields=fields, raw=raw)
'''
SETTINGS = """
[streams.buses]
format = "told"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
time_unit = "s"
max_ahead_s = "off"
"""
RECORDS = """bus 7 was at 24.9 60.2 in second 1700000000
bus 8 was late
bus 9 was at 24.8 60.1 in second 1700000001
"""


def package(folder: Path, name: str, points: str, module: str = "") -> None:
    """Installs a package into a folder: its module, and what pip writes of it."""
    (folder / f"{name}.py").write_text(module, encoding="utf-8")
    about = folder / f"{name}-1.2.dist-info"
    about.mkdir(parents=True)
    about.joinpath("METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n", encoding="utf-8"
    )
    about.joinpath("entry_points.txt").write_text(
        f"[fairway.formats]\n{points}\n", encoding="utf-8"
    )


@pytest.fixture
def packages(tmp_path, monkeypatch) -> Path:
    """A folder where Python looks for packages."""
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.fixture
def conf(tmp_path) -> Path:
    folder = tmp_path / "home" / "conf"
    folder.mkdir(parents=True)
    (folder / "streams.toml").write_text(SETTINGS, encoding="utf-8")
    return folder


def test_a_file_in_the_format_of_a_package_is_replayed(tmp_path, packages, conf):
    package(packages, "told_fixes", "told = told_fixes:Told", MODULE)
    file, home = tmp_path / "records", tmp_path / "home"
    file.write_text(RECORDS, encoding="utf-8")
    command = [sys.executable, "-m", "st_common.cli", "--home", str(home)]
    done = subprocess.run(
        [*command, "replay", "buses", str(file)],
        env={**os.environ, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.stdout == "buses: 3 records in 1 segments, from 0 on\n", done.stderr
    log, stream = Log(Home(home).log("buses")), load_streams(conf)["buses"]
    (part,) = [one.part for one in pieces(log, log.segments(0), stream) if one.part]
    fixes = part.decoded.fixes.to_pylist()
    assert [(fix["object"], fix["x"], fix["y"]) for fix in fixes] == [
        ("bus 7", 24.9, 60.2),
        ("bus 9", 24.8, 60.1),
    ]
    assert part.decoded.rejects["raw"].to_pylist() == [b"bus 8 was late"]


def test_without_the_package_the_format_is_not_known(conf):
    file = conf / "records"
    file.write_text(RECORDS, encoding="utf-8")
    args = ["--home", str(conf.parent), "replay", "buses", str(file)]
    done = CliRunner().invoke(app, args, prog_name="fairway")
    assert done.exit_code == 2
    assert "format = 'told' is none of csv, tsv" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("points", "module", "says"),
    [
        (
            "broken1 = wrong1:Told",
            "import no_such_module",
            "format 'broken1' of package wrong1 1.2 cannot be loaded: ModuleNotFoundError: No module named 'no_such",
        ),
        (
            "broken2 = wrong2:Told",
            "",
            "format 'broken2' of package wrong2 1.2 cannot be loaded: AttributeError",
        ),
        (
            "broken3 = wrong3:Told",
            "class Told: pass",
            "format 'broken3' of package wrong3 1.2 cannot be loaded: wrong3:Told makes no Format",
        ),
        (
            "broken4 = wrong4:Told\ncsv = wrong4:Told",
            MODULE,
            "package wrong4 1.2 brings a format 'csv', which is one of Fairway's",
        ),
    ],
)
def test_a_package_that_is_wrong_is_named(packages, points, module, says):
    name = points.partition(" = ")[2].partition(":")[0]
    package(packages, name, points, module)
    with pytest.raises(ConfigError) as told:
        format_of(points.partition(" ")[0])
    assert says in str(told.value)
    assert "\n" not in str(told.value)


def test_two_packages_that_bring_one_format_are_named(packages):
    package(packages, "one", "twice = one:Told", MODULE)
    package(packages, "two", "twice = two:Told", MODULE)
    with pytest.raises(ConfigError, match=r"one 1\.2 and two 1\.2 both bring"):
        format_of("twice")


def test_nobody_looks_for_packages_before_a_stream_names_their_format(packages, conf):
    package(packages, "told_fixes", "told = told_fixes:Told", "raise RuntimeError")
    ours = SETTINGS.replace('"told"', '"csv"')
    (conf / "streams.toml").write_text(ours, encoding="utf-8")
    program = (
        "import sys; from pathlib import Path\n"
        "from st_common.config.streams import load_streams\n"
        "load_streams(Path(sys.argv[1]))['buses']\n"
        "assert 'importlib.metadata' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(conf)],
        env={**os.environ, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
