"""Writes docs/adr/index.md: the decisions by number, each by its title."""

import re
from pathlib import Path

FOLDER = Path("docs/adr")
_HEAD = """# Decisions

What was decided where somebody would otherwise decide anew, why, and what was measured.
Newest last; what stood under numbers that are missing is part of others, or of the page or
module that it is about.

| | |
|---|---|
"""
_TITLE = re.compile(r"# 0*(\d+)\. (.*)")


def page(folder: Path) -> str:
    """The page as it should be.

    Raises:
        ValueError: a decision does not begin with its number and its title.
    """
    lines = []
    for decision in sorted(folder.glob("0*.md")):
        title = _TITLE.match(decision.read_text(encoding="utf-8"))
        if title is None:
            raise ValueError(f"{decision} does not begin as `# 12. A title`")
        lines.append(f"| {title[1]} | [{title[2]}]({decision.name}) |\n")
    return _HEAD + "".join(lines)


if __name__ == "__main__":
    (FOLDER / "index.md").write_text(page(FOLDER), encoding="utf-8")
