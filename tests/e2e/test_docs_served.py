"""The first round of docs/server.md, with a server as a user starts it; and its programs."""

import itertools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.doc_blocks import blocks
from tests.kit.page_home import Served
from tests.kit.tutorial import is_said, ports_for

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.spec("S11"),
]

PAGE = blocks(Path(__file__).resolve().parents[2] / "docs" / "server.md")
HERE = "8640"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    conf = tmp_path / "home" / "conf"
    conf.mkdir(parents=True)
    (conf / "streams.toml").write_text(text("toml"))
    served = Served(tmp_path, int(ports_for((HERE,))[HERE]))
    served.start()
    try:
        yield served
    finally:
        served.stop()


def text(kind: str, number: int = 0) -> str:
    return [block.text for block in PAGE if block.kind == kind][number]


def first_lines(served: Served, count: int, *words: str) -> list[str]:
    """The first lines of a program of the page that are not empty, with the port of here; it is ended then."""
    here = [word.replace(HERE, str(served.port)) for word in words]
    with subprocess.Popen(here, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        lines = (line for line in program.stdout if line.strip())
        said = list(itertools.islice(lines, count))
        program.kill()
    return said


def done(served: Served, *words: str) -> None:
    """Runs a program of the page to its end, with the port of here."""
    here = [word.replace(HERE, str(served.port)) for word in words]
    subprocess.run(here, stdout=subprocess.DEVNULL, timeout=120, check=True)


def test_the_first_round_and_the_programs_of_the_page_say_what_it_shows(served: Served):
    shell = ["bash", "-c"]
    register, follow, post = text("sh").splitlines()
    done(served, *shell, register)
    done(served, *shell, post)
    shown = tuple(line for line in text("text").splitlines() if line)
    assert follow.endswith(" &")
    following = f"exec {follow.removesuffix(' &')}"
    said = "".join(first_lines(served, len(shown), *shell, following))
    assert is_said(shown, said), said

    program = [sys.executable, "-u", "-c", text("python")]
    assert first_lines(served, 1, *program) == ["1 a\n"]
    done(served, sys.executable, "-c", text("python", 1))
