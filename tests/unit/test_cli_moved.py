"""Commands of an older version are refused in one line that says what to write now."""

import importlib.util

import pytest
import typer
from typer.testing import CliRunner

from st_common.cli import app
from st_common.cli.frame import MOVED


@pytest.mark.parametrize("old", MOVED)
def test_a_command_of_an_older_version_is_refused_with_the_new_one(old: str):
    done = CliRunner().invoke(
        app, [*old.split(), "word", "--wrong", "--home", "nowhere"]
    )
    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()
    assert f"`fairway {old}` of older versions" in line
    assert f"is `{MOVED[old]}` now" in line


@pytest.mark.parametrize("new", MOVED.values())
def test_the_new_words_call_a_command(new: str):
    program, *words = new.split()
    if program == "python":
        assert importlib.util.find_spec(f"{words[1]}.__main__"), new
        return
    command = typer.main.get_command(app)
    for word in words:
        if word in {name for param in command.params for name in param.opts}:
            return
        if not hasattr(command, "commands"):
            break
        command = command.commands[word]
    assert not hasattr(command, "commands"), new


def test_a_word_that_was_never_a_command_is_unknown_as_ever():
    done = CliRunner().invoke(app, ["backup", "--home"])
    assert "older versions" not in done.stderr
    done = CliRunner().invoke(app, ["restores"])
    assert (done.exit_code, "older versions" in done.stderr) == (2, False)
