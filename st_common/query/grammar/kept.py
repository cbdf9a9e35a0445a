"""The automaton of the grammar, kept in a file.

`fairway.lark` is what people write. Lark takes 0.2 s to make an automaton of it, so `make generate` keeps that
beside it as JSON. A file that was made of another grammar is not used: then Lark makes the automaton at once.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from st_common.query.grammar.automaton import Automaton, Rule, Terminal

FILE = Path(__file__).with_name("fairway.lark")
KEPT = Path(__file__).with_name("fairway.json")


@cache
def automaton() -> Automaton:
    """The automaton of the grammar: the kept one, or a new one when the kept one is of another grammar."""
    text = FILE.read_text(encoding="utf-8")
    if KEPT.is_file():
        kept = json.loads(KEPT.read_text(encoding="utf-8"))
        if kept["made_of"] == sum_of(text):
            return _read(kept)
    from st_common.query.grammar.making import made_of  # slow to import

    return made_of(text)


def sum_of(text: str) -> str:
    """By what a kept automaton knows the grammar that it was made of: its SHA-256, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def written(made: Automaton, text: str) -> str:
    """An automaton and the sum of its grammar as JSON, a line for each terminal, rule and state."""
    lines = [f'{{"made_of": {json.dumps(sum_of(text))}']
    for key, value in asdict(made).items():
        rows = [json.dumps(row) for row in value] if key != "begins" else None
        shown = json.dumps(value) if rows is None else "[\n" + ",\n".join(rows) + "]"
        lines.append(f"{json.dumps(key)}: {shown}")
    return ",\n".join(lines) + "}\n"


def _read(kept: Mapping[str, Any]) -> Automaton:
    return Automaton(
        terminals=[Terminal(**each) for each in kept["terminals"]],
        ignored=kept["ignored"],
        rules=[Rule(**each) for each in kept["rules"]],
        begins=kept["begins"],
        states=kept["states"],
    )
