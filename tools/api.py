"""Writes docs/api.md, the public interface for programs in Python, from the package `fairway` and its docstrings.

`--check` compares instead of writing.
"""

import argparse
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fairway

PAGE = Path("docs/api.md")
HEAD = """# The interface for Python

All that programs may rely on is in the package `fairway`, with types; `st_common` below it may change at any time.
[install.md](install.md) says how to install it. The page is written by `make generate` from the code.
"""
ELSEWHERE = {
    "continuous": "Continuous queries over any DataFrame of PySpark, by the extra `spark`: see "
    "[continuous.md](continuous.md).",
    "register_log_source": "The log of a home as a source of Spark, by the extra `spark`: see "
    "[continuous.md](continuous.md#the-log-of-a-home).",
    "query": "Begins a query that is built step by step, see [builder.md](builder.md).",
}
_SECTION = re.compile(r"^(Args|Returns|Raises|Attributes|Yields|Example):$")
_LISTED = {"Args", "Attributes", "Raises"}
_SESSION = re.compile(r"^    >>> .*\n(?:(?:    .*)?\n)*?(?=\n?(?:\S|\Z))", re.MULTILINE)
_AS_IT_IS = "\0"  # begins a line that is copied
_ENTRY = re.compile(r"^    (\w[\w, ]*): (.*)$")


def page() -> str:
    """The page as it should be."""
    names = sorted(fairway.__all__, key=_order)
    return (
        "\n".join([HEAD, *(line for name in names for line in _part(name))]).rstrip()
        + "\n"
    )


def _order(name: str) -> tuple[int, str]:
    first = [
        "evaluate",
        "Evaluation",
        "connect",
        "Client",
        "Subscription",
        "ChangeFeed",
        "Result",
    ]
    last = name in ELSEWHERE or name.endswith("Error")
    return (first.index(name) if name in first else 9 + last, name)


def _part(name: str) -> Iterator[str]:
    if name in ELSEWHERE:
        yield from (f"## `fairway.{name}`", "", ELSEWHERE[name], "")
        return
    value = getattr(fairway, name)
    if not inspect.isclass(value):
        yield from (f"## `fairway.{name}{_signature(value)}`", "", *_text(value), "")
        return
    yield from (f"## `fairway.{name}`", "", *_text(value), "")
    for member, method in vars(value).items():
        if not member.startswith("_") and _is_told(method):
            called = member + (
                "" if isinstance(method, property) else _signature(method)
            )
            yield from (f"### `{called}`", "", *_text(method), "")


def _is_told(member: Any) -> bool:
    return isinstance(member, property) or inspect.isfunction(member)


def _signature(function: Any) -> str:
    """How it is called, with types, as it stands in the code."""
    text = (
        str(inspect.signature(function)).replace("(self, ", "(").replace("(self)", "()")
    )
    text = re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", text)
    return text.replace("'", "").replace("pathlib.", "").replace("datetime.", "")


def _text(value: Any) -> Iterator[str]:
    """A docstring as Markdown: its sections as lists, sessions of Python as they are typed."""
    text = inspect.cleandoc(inspect.getdoc(value) or "")
    yield from _prose(_SESSION.sub(_fenced, text))


def _fenced(session: re.Match[str]) -> str:
    typed = textwrap.dedent(session[0]).strip()
    return "".join(
        f"{_AS_IT_IS}{line}\n" for line in f"```pycon\n{typed}\n```".split("\n")
    )


def _prose(text: str) -> Iterator[str]:
    is_list = False
    for line in text.splitlines():
        if line.startswith(_AS_IT_IS):
            yield line.removeprefix(_AS_IT_IS)
            continue
        if section := _SECTION.match(line):
            is_list = section[1] in _LISTED
            yield from (f"{section[1]}:", "")
        elif is_list and (entry := _ENTRY.match(line)):
            yield f"- `{entry[1]}`: {entry[2]}"
        else:
            yield f"  {line.strip()}" if is_list and line else line.strip()


def main() -> int:
    """Writes or compares; gives back the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    text = page()
    if not parser.parse_args().check:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{PAGE} is not what the code says: make generate ARGS=api", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
