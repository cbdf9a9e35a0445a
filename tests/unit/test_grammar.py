"""The grammar that is printed is the one that is parsed, in both directions."""

import contextlib
import random
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.query.grammar.dialect import Fairway
from st_common.query.grammar.ebnf import KINDS, ONCE, grammar
from st_common.query.grammar.expected import expected_after, is_sentence
from st_common.query.grammar.notation import Alt, Kind, Many, Part, Ref, Seq, Word
from st_common.query.grammar.notation import productions as productions_of
from st_common.query.problem import TextError
from st_common.query.text import parse
from st_common.testing.effort import tries

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = {
    "WORD": ("taxis", "parks", "speed", "t1", "Car", "_x"),
    "QUOTED": ('"ships-dk"', '"a ""b"""', '"select"'),
    "NUMBER": ("0", "7", "41.5", "0.25", "1e3"),
    "STRING": ("'free'", "'it''s'", "''", "'M'"),
    "EXTENT": ("'50 km'", "'60 minutes'", "'1.5e3m'"),
    "WKT": ("'POLYGON((0 0, 1 0, 1 1, 0 0))'",),
    "LINE": ("'LINESTRING(0 0, 1 0)'", "'MultiLineString((0 0, 1 0), (2 1, 3 1))'"),
}
DEPTH = 16


def sentence(
    part: Part,
    rng: random.Random,
    depth: int = 0,
    productions: Mapping[str, Part] | None = None,
) -> list[str]:
    """Tokens that the part derives; deeper down the shortest choices are made."""
    known = grammar() if productions is None else productions

    def of(one: Part, deeper: int = 0) -> list[str]:
        return sentence(one, rng, depth + deeper, known)

    match part:
        case Word(text):
            return [rng.choice((text, text.lower(), text.title()))]
        case Kind(name):
            return [rng.choice(SAMPLES[name])]
        case Ref(name):
            return of(known[name], 1)
        case Seq(parts):
            return [token for one in parts for token in of(one)]
        case Alt(parts):
            chosen = (
                rng.choice(parts)
                if depth < DEPTH
                else min(parts, key=lambda one: weight(one, ()))
            )
            return of(chosen)
        case Many(Ref(name), _, _) if name == ONCE:
            clauses = known[name].parts
            return [
                token
                for one in rng.sample(clauses, rng.randint(0, 4))
                for token in of(one)
            ]
        case Many(one, least, most):
            times = (
                least
                if depth >= DEPTH
                else rng.choice(
                    (least, least, least, least + 2 if most is None else most)
                )
            )
            return [token for _ in range(times) for token in of(one)]


def weight(part: Part, above: tuple[str, ...]) -> float:
    """How many tokens the shortest sentence of a part has."""
    match part:
        case Word() | Kind():
            return 1
        case Ref(name):
            return (
                float("inf")
                if name in above
                else weight(grammar()[name], (*above, name))
            )
        case Seq(parts):
            return sum(weight(one, above) for one in parts)
        case Alt(parts):
            return min(weight(one, above) for one in parts)
        case Many(one, least, _):
            return least and weight(one, above)


@pytest.mark.spec("P4")
@tries(300)
@given(seed=st.integers(0, 1 << 32))
def test_whatever_the_grammar_derives_is_parsed(seed: int):
    rng = random.Random(seed)
    text = " ".join(sentence(grammar()["statement"], rng))
    parser = Fairway().parser()
    parser.parse(
        Fairway().tokenize(text), text
    )  # refuses what is wrong by its form alone
    assert parser.refusals == []
    with contextlib.suppress(TextError):  # about names and values
        parse(text)
    assert is_sentence(text)


def test_random_sentences_come_from_every_production():
    seen: set[str] = set()

    class Noted(dict):
        def __getitem__(self, name):
            seen.add(name)
            return super().__getitem__(name)

    noted = Noted(grammar())
    for seed in range(400):
        sentence(noted["statement"], random.Random(seed), productions=noted)
    assert set(grammar()) - seen == {"statements"}


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
        "SELECT * FROM t",
        "DROP QUERY select",
        "EXPLAIN 'q'",
        "SHOW LAYERS",
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
        ";",
    }
    inside = expected_after("REGISTER QUERY q AS SELECT * FROM taxis INSIDE ")
    assert inside is not None
    assert {"area", "box", "circle", "moving"} <= inside.productions
    assert not inside.at_end
    assert expected_after("REGISTER FROM ") is None
    assert expected_after("REGISTER QUERY 'a") is None


def test_every_kind_of_tokens_is_explained():
    def kinds(part: Part) -> set[str]:
        match part:
            case Kind(name):
                return {name}
            case Seq(parts) | Alt(parts):
                return {name for one in parts for name in kinds(one)}
            case Many(one, _, _):
                return kinds(one)
        return set()

    assert (
        {name for part in grammar().values() for name in kinds(part)}
        == set(KINDS)
        == set(SAMPLES)
    )


def test_every_production_is_used():
    used = set(re.findall(r"Ref\(name='(\w+)'\)", repr(grammar())))
    assert set(grammar()) - used == {"statements"}


@pytest.mark.parametrize("wrong", ["a ::= b", "a b", "a ::= ( 'x'", "a ::= )"])
def test_what_is_no_grammar_is_refused(wrong: str):
    with pytest.raises((ValueError, IndexError)):
        productions_of(wrong)


def test_the_page_is_fresh():
    done = subprocess.run(
        [sys.executable, ROOT / "tools/grammar.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
