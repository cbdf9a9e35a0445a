"""What is parsed, what is printed and what is completed are one grammar, in both directions."""

import contextlib
import json
import logging
import random
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import lark
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from st_common.config.units import METRES, SECONDS, SPEEDS, TUPLES
from st_common.query.grammar.automaton import STARTS
from st_common.query.grammar.building_expressions import TYPES
from st_common.query.grammar.expecting import expected_after, is_sentence
from st_common.query.grammar.kept import FILE, KEPT, automaton, sum_of
from st_common.query.grammar.making import made_of
from st_common.query.grammar.statements import expression_of, statement_of
from st_common.query.grammar.terminals import terminals, tokens_in
from st_common.query.grammar.words import is_plain
from st_common.query.lowering.comparing import STEPS
from st_common.query.lowering.options import FIXES, OPTIONS
from st_common.query.problem import TextError
from st_common.query.text import parse
from tests.kit.effort import tries

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("taxis", "parks", "speed", "t1", "Car", "_x")
SAMPLES = {
    "NAME": NAMES,
    "ALIAS": NAMES,
    "RESERVED": ("from", "WHERE", "Union"),
    "QUOTED": ('"ships-dk"', '"a ""b"""', '"select"'),
    "NUMBER": ("0", "7", "41.5", "0.25", "1e3", ".5"),
    "STRING": (
        *("'free'", "'it''s'", "''", "'M'", "'POLYGON((0 0, 1 0, 1 1, 0 0))'"),
        *("'LINESTRING(0 0, 1 0)'", "'MultiLineString((0 0, 1 0), (2 1, 3 1))'"),
    ),
    "EXTENT": ("'50 km'", "'60 minutes'", "'1.5e3m'"),
}
DEPTH = 9  # of choices with more than one part
Rules = Mapping[str, Sequence[Sequence[str]]]


def rules() -> Rules:
    """What each rule may stand for, as the parser has it."""
    found: dict[str, list[Sequence[str]]] = {}
    for rule in automaton().rules:
        found.setdefault(rule.origin, []).append(rule.expansion)
    return found


def weights(known: Rules) -> Mapping[str, float]:
    """How many tokens the shortest sentence of each rule has."""
    found = dict.fromkeys(known, float("inf"))
    for _ in known:
        for name, expansions in known.items():
            found[name] = min(
                sum(found.get(symbol, 1) for symbol in one) for one in expansions
            )
    return found


RULES = rules()
WEIGHTS = weights(RULES)


def sentence(
    symbol: str, rng: random.Random, seen: set[str], depth: int = 0
) -> list[str]:
    """Tokens that a rule derives; deeper down the shortest choices are made."""
    if symbol not in RULES:
        words = terminals().words_of(symbol) or SAMPLES[symbol]
        word = rng.choice(words)
        is_word = symbol not in SAMPLES
        return [rng.choice((word, word.lower(), word.title())) if is_word else word]
    seen.add(symbol)
    expansions = list(RULES[symbol])
    rng.shuffle(expansions)
    chosen = min(
        expansions,
        key=lambda one: (
            sum(WEIGHTS.get(each, 1) for each in one) if depth > DEPTH else 0
        ),
    )
    deeper = depth + (len(chosen) > 1)
    return [token for each in chosen for token in sentence(each, rng, seen, deeper)]


@pytest.mark.spec("P4")
@tries(300)
@given(seed=st.integers(0, 1 << 32))
def test_whatever_the_grammar_derives_is_parsed(seed: int):
    text = " ".join(sentence("statement", random.Random(seed), set()))
    tree, refusals = statement_of(tokens_in(text))
    assert tree is not None
    assert [one for one in refusals if "there are multiple" not in one.message] == []
    with contextlib.suppress(TextError):  # about names and values
        parse(text)
    assert is_sentence(text)


def test_random_sentences_come_from_every_rule():
    seen: set[str] = set()
    for seed in range(900):
        sentence("statement", random.Random(seed), seen)
    missing = {name for name in set(RULES) - seen if not name.startswith("__")}
    assert missing == set(STARTS) - {"statement", "expression"}


def examples() -> list[str]:
    found = [
        path.read_text(encoding="utf-8").strip().split("\n\n")
        for path in (ROOT / "tests/golden").glob("*.sql")
    ]
    golden = [text for parts in found for text in (parts[0], parts[-1])]
    page = (ROOT / "docs/query-language.md").read_text(encoding="utf-8")
    return [*golden, *re.findall(r"```sql\n(.*?)```", page, re.DOTALL)]


@pytest.mark.spec("P4")
def test_whatever_is_shown_is_derived_by_the_grammar():
    assert [text for text in examples() if not is_sentence(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "REGISTER QUERY",
        "REGISTER QUERY q AS SELECT * FROM t AS OF '2024-05-01'",
        "SELECT * FROM t AS OF noon",
        "DROP QUERY select",
        "EXPLAIN 'q'",
        "SHOW LAYERS",
        "DROP QUERY q EMIT CHANGESX",
    ],
)
def test_what_is_no_sentence_is_not_derived(text: str):
    assert not is_sentence(text)


def test_what_may_come_next():
    first = expected_after("")
    assert first is not None
    assert first.words == {
        "REGISTER",
        "REPLACE",
        "DROP",
        "CREATE",
        "SHOW",
        "EXPLAIN",
        "SELECT",
        ";",
    }
    inside = expected_after("REGISTER QUERY q AS SELECT * FROM taxis INSIDE ")
    assert inside is not None
    assert {"area", "region", "corner_pair"} <= inside.rules
    assert {"CIRCLE", "FEATURE", "("} <= inside.words
    assert not inside.at_end
    window = expected_after("REGISTER QUERY q AS SELECT * FROM taxis WINDOW 5 ")
    assert window is not None
    assert {"min", "hours", "tuples"} <= window.words
    assert expected_after("REGISTER FROM ") is None
    assert expected_after("REGISTER QUERY 'a") is None


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("WHERE a = 1 GROUP ", {"BY", "KNN"}),
        ("WHERE a = 1 reverse ", {"KNN"}),
        ("COMPARE ", {"WITH"}),
        ("EMIT CHANGES WITH ", {"VALID", "("}),
        ("NOT ", {"INSIDE"}),
        ("INSIDE a AND NOT ", {"INSIDE"}),
        ("EMIT CHANGES WITH VALID ", {"UNTIL"}),
    ],
)
def test_the_rest_of_a_phrase_may_come_next(text: str, more: set[str]):
    found = expected_after(f"REGISTER QUERY q AS SELECT * FROM taxis {text}")
    assert found is not None
    assert more <= found.words


def test_what_may_come_next_is_what_the_parser_takes():
    text = "REGISTER QUERY q AS SELECT * FROM range "
    found = expected_after(text)
    assert found is not None
    assert "RATTR" not in found.words  # which may stand behind other names
    for word in found.words - {";"}:
        assert expected_after(f"{text} {word} ") is not None, word


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("5km / h", []),
        ("5 km/hours", []),
        ("5 km / x", ["x"]),
        ("s / h", ["s", "h"]),
        ("(5 km) / h", ["h"]),
    ],
)
def test_a_stroke_behind_a_length_is_before_a_time_or_divides(text, columns):
    tree = expression_of(text)
    assert [each.name for each in tree.find_all(exp.Column, bfs=False)] == columns


def test_a_comment_is_a_blank():
    text = "DROP -- a; b\n QUERY /* it's; */ q"
    (statement,) = parse(text)
    assert (statement.op, statement.name) == ("drop", "q")


@pytest.mark.parametrize(
    "text", ["DROP QUERY q /* open", "DROP QUERY 'q", "/* /* */ */ DROP QUERY q"]
)
def test_what_is_not_closed_is_no_statement(text):
    with pytest.raises(TextError):
        parse(text)


def test_words_of_the_grammar_are_those_of_who_reads_them():
    classes = terminals().classes
    assert set(classes["LENGTH"]) == set(METRES)
    assert set(classes["TIME"]) == set(SECONDS)
    assert set(classes["SPEED"]) == set(SPEEDS)
    assert set(classes["COUNTED"]) == {*TUPLES, *FIXES}
    assert set(classes["TYPE"]) == set(TYPES)
    assert {each for (each,) in RULES["option_name"]} >= set(map(str.upper, OPTIONS))
    assert {each for (each,) in RULES["step_name"]} >= set(map(str.upper, STEPS))
    assert all(terminals().patterns["STROKE"].match(f"/{unit}") for unit in SECONDS)


def test_reserved_words_are_written_in_quotes():
    assert [word for word in terminals().reserved if is_plain(word)] == []


def test_every_terminal_that_is_a_pattern_is_explained():
    lines = FILE.read_text(encoding="utf-8").split("\n")
    bare = [
        line
        for before, line in pairwise(lines)
        if re.match(r"[A-Z_]+: /", line) and not before.startswith("//")
    ]
    assert [line for line in bare if not line.startswith(("COMMENT", "BLANK"))] == []


def test_no_state_of_the_parser_is_in_two_minds(caplog):
    grammar = FILE.read_text(encoding="utf-8")
    ambiguous = grammar.replace('"OR" conjunction', '"OR" expression')
    for text, conflicts in ((grammar, False), (ambiguous, True)):
        caplog.clear()
        with caplog.at_level(logging.DEBUG, logger=lark.logger.name):
            lark.Lark(text, parser="lalr", lexer="basic", start=[*STARTS], debug=True)
        assert ("conflict" in caplog.text) is conflicts


def test_a_kept_automaton_is_what_lark_makes_of_the_grammar():
    made = made_of(FILE.read_text(encoding="utf-8"))
    kept = automaton.__wrapped__()
    assert made == kept


@pytest.fixture
def another_grammar(tmp_path, monkeypatch):
    """A grammar with a statement more than the kept automaton knows."""
    text = FILE.read_text(encoding="utf-8")
    changed = tmp_path / "changed.lark"
    changed.write_text(text.replace('"SHOW" (', '"SHOW" ("TEAPOTS" | '))
    monkeypatch.setattr("st_common.query.grammar.kept.FILE", changed)
    return changed


def test_an_automaton_of_another_grammar_is_made_anew(another_grammar):
    before = json.loads(KEPT.read_text(encoding="utf-8"))
    assert before["made_of"] != sum_of(another_grammar.read_text())
    assert "TEAPOTS" not in {each["name"] for each in before["terminals"]}
    assert "TEAPOTS" in {each.name for each in automaton.__wrapped__().terminals}


def test_an_automaton_that_is_not_kept_is_made_anew(tmp_path, monkeypatch):
    kept = automaton()
    monkeypatch.setattr("st_common.query.grammar.kept.KEPT", tmp_path / "none")
    assert automaton.__wrapped__() == kept


def test_a_rule_that_nothing_makes_a_value_of_is_refused():
    grammar = FILE.read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="rule negation: NOT negation"):
        made_of(grammar.replace('"NOT" negation -> not_', '"NOT" negation'))


def test_a_statement_is_parsed_without_lark():
    program = "import sys; from st_common.query.text import parse; parse('DROP QUERY q'); print('lark' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_page_and_automaton_are_fresh():
    done = subprocess.run(
        [sys.executable, ROOT / "tools/grammar.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
