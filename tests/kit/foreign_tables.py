"""A home with two streams, of which another program alters the tables of one: `good` and `ill`."""

from pathlib import Path

from typer.testing import CliRunner

from st_common.cli import app
from st_common.config.home import Home
from tests.kit.log_writer import bare_log

CONF = """
[streams.NAME]
format = "csv"
crs = "planar"
time_unit = "s"
engine = "local"
max_ahead_s = "off"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
"""


def two_streams(root: Path, *seconds: int, settings: str = "") -> None:
    """Makes a home in which both streams have run, with a query each.

    Args:
        root: its folder, which is not there yet.
        seconds: when records begin, a run each.
        settings: further lines of both streams' settings.
    """
    (root / "conf").mkdir(parents=True)
    names = ("good", "ill")
    text = "".join(CONF.replace("NAME", name) + settings for name in names)
    (root / "conf" / "streams.toml").write_text(text, encoding="utf-8")
    for name in names:
        query = f"REGISTER QUERY of_{name} AS SELECT * FROM {name} INSIDE (1, 0, 4, 2)"
        fairway(root, "query", "register", "--text", query)
        for second in seconds:
            feed(root, name, second)


def fairway(root: Path, *words: str, code: int | None = 0) -> str:
    """What a command says; it must end with a code, None for any."""
    places = ["--home", str(root), "--conf", str(root / "conf")]
    done = CliRunner().invoke(app, [*words, *places], prog_name="fairway")
    assert code in (None, done.exit_code), f"{words}: {done.output}"
    return done.output


def feed(root: Path, stream: str, second: int, code: int = 0) -> str:
    """Appends records to a stream's log, and runs it to the end."""
    log = bare_log(Home(root).log(stream))
    log.append(_records(second), arrival_us=second * 1_000_000)
    return fairway(root, "run", stream, "--until-idle", code=code)


def _records(second: int) -> bytes:
    """Two objects that go through the box of the query, a step each second."""
    lines = [f"{name},{second + n},{n},1" for n in range(6) for name in "ab"]
    return "\n".join(["id,t,x,y", *lines, ""]).encode()
