"""The wheel, built and installed into an empty environment, does what its page promises, from an empty folder.

There is no Java, no Spark, no compiler, and nothing of this checkout on any path.
"""

import fcntl
import json
import os
import pty
import re
import shlex
import shutil
import struct
import subprocess
import sys
import termios
import time
import tomllib
from pathlib import Path

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
UV = Path(sys.executable).with_name("uv")
SOURCES = ("fairway", "st_common", "requirements", "conf", "data_contracts")
FILES = ("pyproject.toml", "setup.py", "MANIFEST.in", "pom.xml", "README.md", "LICENSE")
MOST_BYTES = 620_000_000  # pyarrow, deltalake, duckdb and numpy are 420 MB of it
LEFT_OUT = (
    "pyspark",
    "delta",
    "sedona",
    "great_expectations",
    "matplotlib",
    "pyogrio",
    "scipy",
)
PAGE = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
ON_SPARK = """
[streams.buses]
engine = "spark"
format = "csv"
columns = { object = "id", x = "lon", y = "lat", event_ts = "t" }
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python environment that holds the wheel and what the core's lock says, by its hashes."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in SOURCES:
        ignored = shutil.ignore_patterns("__pycache__", "examples")
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    for name in FILES:
        shutil.copy(ROOT / name, source)
    with_tools = ["--no-build-isolation", "--python", sys.executable]
    uv("build", "--wheel", "--quiet", *with_tools, "--out-dir", folder, source)
    (wheel,) = folder.glob("fairway_streams-*.whl")
    made = folder / "venv"
    uv("venv", "--quiet", "--python", sys.executable, made)
    into = ["--quiet", "--python", made / "bin" / "python"]
    uv("pip", "sync", *into, "--require-hashes", ROOT / "requirements" / "core.lock")
    uv("pip", "install", *into, "--no-deps", wheel)
    uv("pip", "check", *into)
    return made


@pytest.mark.spec("S9")
def test_the_wheel_registers_replays_runs_answers_and_verifies(environment, tmp_path):
    told = command(environment, tmp_path)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert told("--version") == f"fairway {version}\n"
    assert "wrote home/conf/streams.toml" in told("init", "--home", "home")
    settings = block("toml") + ON_SPARK
    (tmp_path / "home" / "conf" / "streams.toml").write_text(settings)
    (tmp_path / "fixes.csv").write_text(block("csv"))
    said = [told(*shlex.split(line)[1:]) for line in commands_of_the_page()]
    tried, _, replayed, ran, changes, answer, verified = said
    assert "SUOKKI" in tried
    assert "4 records" in replayed
    assert "4 fixes" in ran
    assert [line.split()[1:3] for line in changes.splitlines()[1:]] == [
        ["a", "1"],
        ["a", "-1"],
        ["b", "1"],
    ]
    assert [line.split()[0] for line in answer.splitlines()] == ["object", "b"]
    assert "centre: 1 members" in verified
    assert "WRONG" not in verified
    told("check", "fixes.csv", "--write", "cars", "--home", "home")
    assert "cars" in told("run", "cars", "--until-idle", "--home", "home")
    refused = told("run", "buses", "--home", "home", code=2)
    assert refused.startswith("error: stream 'buses' runs on the engine spark")
    assert refused.count("\n") == 1
    wide = on_a_terminal(environment, tmp_path, "status", "--home", "home", columns=40)
    assert max(map(len, wide)) == 40
    assert wide[1].startswith("taxis")
    assert "\x1b[" not in "".join(wide)


def test_a_stream_whose_engine_is_not_installed_is_tried_once_and_again_when_mended(
    environment, tmp_path
):
    told, home = command(environment, tmp_path), tmp_path / "home"
    told("init", "--home", "home")
    (home / "conf" / "streams.toml").write_text(ON_SPARK + "running = true\n")
    (tmp_path / "fixes.csv").write_text("id,t,lon,lat\na,2024-01-01T00:00:00Z,1,1\n")
    told("replay", "buses", "fixes.csv", "--home", "home")

    def look():
        program = [
            environment / "bin" / "python",
            "-m",
            "st_common.processes.supervise",
        ]
        done = subprocess.run(
            [*program, "--home", home],
            cwd=tmp_path,
            env=clean(environment),
            capture_output=True,
            check=True,
        )
        told = json.loads(done.stdout)
        return [one["kind"] for one in told["actions"]], told["streams"]["buses"]

    assert look()[0] == ["start"]
    until(lambda: look() == ([], "bad_config"))
    status = told("status", "--home", "home")
    assert "buses: bad_config: stream 'buses' runs on the engine spark" in status
    assert look() == ([], "bad_config")
    on_local = (ON_SPARK + "running = true\n").replace('"spark"', '"local"')
    (home / "conf" / "streams.toml").write_text(on_local)
    assert look()[0] == ["start"]
    until(lambda: '"changes"' in told("status", "--json", "--home", "home"))
    stop(home, look)


def until(is_so):
    end_s = time.monotonic() + 100
    while not is_so():
        assert time.monotonic() < end_s
        time.sleep(0.2)


def stop(home: Path, look) -> None:
    """Has the stream stopped by looks that find it unwanted."""
    settings = home / "conf" / "streams.toml"
    settings.write_text(settings.read_text().replace("running = true", ""))
    until(lambda: look() == ([], "stopped"))


@pytest.mark.spec("S9")
def test_the_wheel_holds_what_programs_need_and_no_more(environment, tmp_path):
    packages = environment / "lib" / "python3.11" / "site-packages"
    for name in ("fairway/py.typed", "st_common/py.typed", "st_common/shipped/pom.xml"):
        assert (packages / name).is_file(), name
    for name in (*LEFT_OUT, "tests/kit", "jobs", "dags", "tests"):
        assert not (packages / name).exists(), name
    files = [path for path in packages.rglob("*") if path.suffix != ".pyc"]
    assert sum(path.lstat().st_size for path in files) < MOST_BYTES
    program = (
        "import fairway\n"
        "from st_common.contracts import contract_names, load_contract\n"
        "print(len([load_contract(name) for name in contract_names()]))\n"
        "print(len(fairway.connect('home').objects('taxis')))\n"
    )
    (tmp_path / "home" / "conf").mkdir(parents=True)
    (tmp_path / "home" / "conf" / "streams.toml").write_text(block("toml"))
    done = subprocess.run(
        [environment / "bin" / "python", "-c", program],
        cwd=tmp_path,
        env=clean(environment),
        capture_output=True,
        text=True,
        check=False,
    )
    contracts = len(list((ROOT / "data_contracts").glob("*.odcs.yaml")))
    assert done.stdout == f"{contracts}\n"
    assert "QueryError: stream 'taxis' has no positions yet" in done.stderr


def block(language: str) -> str:
    """The one block of the page in a language."""
    (text,) = re.findall(
        rf"^```{language}[^\n]*\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL
    )
    return text


def commands_of_the_page() -> list[str]:
    blocks = re.findall(r"^```sh\n(fairway .*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    text = "".join(blocks)
    return text.splitlines()


def uv(*words: object) -> None:
    done = subprocess.run(
        [UV, *map(str, words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def clean(environment: Path) -> dict[str, str]:
    """Nothing but the environment's own programs on the path, and no settings of anybody."""
    return {"PATH": str(environment / "bin"), "HOME": "/nonexistent", "NO_COLOR": "1"}


def command(environment: Path, folder: Path):
    def told(*words: str, code: int = 0) -> str:
        done = subprocess.run(
            [environment / "bin" / "fairway", *words],
            cwd=folder,
            env=clean(environment),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done.stderr if code else done.stdout

    return told


def on_a_terminal(
    environment: Path, folder: Path, *words: str, columns: int
) -> list[str]:
    """The lines that a command writes to a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    done = subprocess.Popen(
        [environment / "bin" / "fairway", *words],
        cwd=folder,
        env=clean(environment),
        stdout=theirs,
    )
    os.close(theirs)
    said = b""
    while part := _read(ours):
        said += part
    assert done.wait(timeout=60) == 0
    os.close(ours)
    return said.decode().splitlines()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # its other end is closed
        return b""
