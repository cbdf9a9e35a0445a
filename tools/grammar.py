"""Writes docs/grammar.md from the grammar in st_common; `--check` compares instead of writing."""

import argparse
import sys
from pathlib import Path

from st_common.query.grammar.ebnf import KINDS, ONCE, SECTIONS, START

PAGE = Path("docs/grammar.md")
HEAD = f"""# Grammar

The whole language in W3C's EBNF, made from `st_common/query/grammar/ebnf.py` by `make grammar`.
[query-language.md](query-language.md) says what it means. `?` is once or not at all, `*` any number of times, `+` at
least once, `|` one of them. Words in quotes are read in any case; blanks and comments (`-- ...`, `/* ... */`) may stand
between all tokens. A text is `{START}`. After `SELECT` each alternative of `{ONCE}` stands at most once, in any order.

Tests derive random sentences from these productions and have them parsed, and find every example of the documentation
among their sentences. Which names are known, which types fit and what does not go together is said by
[query-language.md](query-language.md#what-does-not-go-together), and by errors.
"""


def page() -> str:
    """The page as it should be."""
    kinds = "\n".join(f"| `{name}` | {meaning} |" for name, meaning in KINDS.items())
    parts = [
        f"## {title}\n\n```ebnf\n{text.strip()}\n```\n"
        for title, text in SECTIONS.items()
    ]
    return "\n".join(
        [HEAD, *parts, f"## Tokens\n\n| kind | what it is |\n|---|---|\n{kinds}\n"]
    )


def main() -> int:
    """Writes the page, or says whether it is fresh."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    if not parser.parse_args().check:
        PAGE.write_text(page(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page():
        sys.stderr.write(f"{PAGE} is not what the grammar says: make grammar\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
