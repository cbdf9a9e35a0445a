"""What carries docker/Dockerfile out without a container engine does as an engine does, and refuses what it cannot."""

from pathlib import Path

import pytest

from tests.kit.dockerfile import DockerfileError, build, context, parse

BEGIN = "FROM python:3.11.13-slim-bookworm\nWORKDIR /opt/x\n"
FILES = {
    "a.txt": "a",
    "lib/b.py": "b",
    "lib/__pycache__/b.pyc": "c",
    "lib/deep/made/d.js": "d",
    "secret.env": "s",
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "source"


def built(source: Path, text: str) -> dict[str, str]:
    """The files of the last stage, by their places in it."""
    stage = build(text, [*FILES], source.parent / "stages", source)
    return {
        f"/{path.relative_to(stage.root)}": path.read_text()
        for path in stage.root.rglob("*")
        if path.is_file()
    }


def test_the_last_pattern_that_matches_says_whether_a_file_is_given():
    ignore = "# all but\n*\n!lib\n!a.*\n**/__pycache__\nlib/deep/made\n"
    assert context(ignore, [*FILES]) == ["a.txt", "lib/b.py"]
    assert context("lib/*\n!lib/b.py\n", [*FILES]) == [
        "a.txt",
        "lib/b.py",
        "secret.env",
    ]
    assert context("", [*FILES]) == [*FILES]


def test_copies_lie_where_an_engine_puts_them(source: Path):
    copies = """
COPY a.txt lib/b.py ./
COPY a.txt renamed.txt
COPY a.txt into/
COPY lib other
COPY lib/deep /abs
"""
    assert built(source, BEGIN + copies) == {
        "/opt/x/a.txt": "a",
        "/opt/x/b.py": "b",
        "/opt/x/renamed.txt": "a",
        "/opt/x/into/a.txt": "a",
        "/opt/x/other/b.py": "b",
        "/opt/x/other/__pycache__/b.pyc": "c",
        "/opt/x/other/deep/made/d.js": "d",
        "/abs/made/d.js": "d",
    }


def test_steps_run_in_their_stage_and_a_stage_takes_from_another_only_what_it_names(
    source: Path,
):
    text = """
FROM node:20.20.2-bookworm-slim AS page
WORKDIR /web
COPY a.txt ./
RUN cat a.txt a.txt > made.txt \\
 # a comment between
 && echo home > "$HOME/.cache" || mkdir -p "$HOME"
FROM python:3.11.13-slim-bookworm
ENV HOME=/home/u PLACE=/opt/y
RUN useradd --create-home --home-dir /home/u u && install -d -o u -g u /opt/y
USER u
WORKDIR /opt/y
COPY --from=page --chown=u /web/made.txt page/
RUN python3 -c "import os; print(os.getcwd() == os.environ['PLACE'])" > told.txt
"""
    made = built(source, text)
    assert made == {"/opt/y/page/made.txt": "aa", "/opt/y/told.txt": "True\n"}


@pytest.mark.parametrize(
    ("steps", "wrong"),
    [
        ("ADD a.txt ./", "line 3: ADD a.txt ./: known are FROM, COPY"),
        ("COPY nowhere ./", "nowhere is not there"),
        ("COPY --from=page /x ./", "there is no such stage"),
        ("COPY --chown=u a.txt ./", "no step makes that user"),
        ("COPY --link a.txt ./", "not known here"),
        ("COPY *.txt ./", "not known here"),
        ("USER u", "no step makes that user"),
        ("ENV A=$B", "without variables"),
        ("RUN cat nowhere", "exit code 1"),
        ("RUN node --version", "the image has no node"),
        ("RUN rm -rf /tmp/x", "a path of the whole machine"),
        ("RUN apt-get install --yes no-such-package-at-all", "no such package"),
        ("RUN apt-get install make", "install --yes NAME"),
        ("RUN useradd --create-home --home-dir /h u", "its home is not HOME"),
        ("FROM alpine:3", "known are node, python"),
    ],
)
def test_a_step_that_cannot_be_carried_out_is_named(
    source: Path, steps: str, wrong: str
):
    with pytest.raises(DockerfileError) as error:
        built(source, f"{BEGIN}{steps}\n")
    assert wrong in str(error.value)
    assert str(error.value).startswith("line 3: ")


def test_nothing_comes_before_the_first_stage():
    with pytest.raises(DockerfileError, match="there is no stage yet"):
        build("RUN true\n", [], Path("/nonexistent"))
    assert parse("# only a comment\n\n") == []
