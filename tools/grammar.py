"""Writes what is made of the grammar that is parsed: docs/grammar.md, and the automaton beside the grammar.

`--check` compares instead of writing.
"""

import argparse
import sys
from pathlib import Path

from st_common.query.grammar.kept import written
from st_common.query.grammar.making import made_of

GRAMMAR = Path("st_common/query/grammar/fairway.lark")
PAGE = Path("docs/grammar.md")
AUTOMATON = GRAMMAR.with_suffix(".json")
HEADING = "// ## "
HEAD = f"""# Grammar

The whole language: this page is `{GRAMMAR}`, of which the parser is made, written by `make generate`.
[query-language.md](query-language.md) says what it means. A text is a `text`. Blanks and comments (`-- ...`, and
`/* ... */` without another one in it) may stand between all tokens.

Completion in the shell and the "expected .." of errors come out of the same parser. Tests derive random sentences from
its rules and have them parsed, and find every example of the documentation among its sentences. Which names are known,
which types fit, how many numbers a region has and what does not go together is said by
[query-language.md](query-language.md#what-does-not-go-together), and by errors.
"""


def page() -> str:
    """The page as it should be."""
    head, *sections = GRAMMAR.read_text(encoding="utf-8").split(HEADING)
    notes = [line.removeprefix("// ") for line in head.strip().split("\n")]
    parts = [HEAD, "\n".join([*notes[1:], ""])]
    for section in sections:
        title, _, rules = section.partition("\n")
        parts.append(f"## {title}\n\n```lark\n{rules.strip()}\n```\n")
    return "\n".join(parts)


def automaton() -> str:
    """The automaton's file as it should be."""
    text = GRAMMAR.read_text(encoding="utf-8")
    return written(made_of(text), text)


def main() -> int:
    """Writes both files, or says whether they are fresh."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    checks, code = parser.parse_args().check, 0
    for path, content in ((PAGE, page()), (AUTOMATON, automaton())):
        if not checks:
            path.write_text(content, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != content:
            sys.stderr.write(
                f"{path} is not what the grammar says: make generate ARGS=grammar\n"
            )
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
