"""Every example of the docs is run by a test, or at least parsed; one of which nothing is known fails.

ADRs are left out: their examples are of the day of the decision.
"""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
import yaml

from st_common.cli import app
from st_common.config.operations import KeptDays, notifier_of, operations_of
from st_common.config.streams import stream_of_table
from st_common.delivery.settings import load_deliveries
from st_common.formats.elsewhere import GROUP
from st_common.lineage.settings import lineage_settings
from tests.kit.doc_blocks import (
    Block,
    blocks,
    indented,
    spoken_of,
)
from tests.kit.doc_blocks import wrong_words as wrong_words_for

pytestmark = pytest.mark.spec("S11")

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted(DOCS.glob("*.md")),
]
RUN_BY = {
    "sh": "unit/test_docs_commands.py",
    "console": "unit/test_docs_commands.py",
    "toml home/conf/streams.toml": "unit/test_docs_commands.py",
    "csv fixes.csv": "unit/test_docs_commands.py",
    "lark": "unit/test_grammar.py",
    "README.md python": "unit/test_evaluation.py",
    "api.md pycon": "unit/test_evaluation.py",
    "builder.md python": "unit/test_builder_docs.py",
    "coming-from.md sql": "unit/test_query_docs.py",
    "continuous.md python": "spark/test_continuous_docs.py",
    "delivery.md python": "unit/test_delivery_files.py",
    "delivery.md python following": "unit/test_docs_commands.py",
    "file-formats.md sql": "unit/test_boxes.py",
    "how-it-works.md python": "unit/test_docs_pages.py",
    "query-language.md sql": "unit/test_query_docs.py",
    "query-language.md sql wrong": "unit/test_query_docs.py",
    "query-language.md sql from": "unit/test_query_docs.py",
    "query-language.md sql conditional": "unit/test_moot.py",
    "query-language.md sql parameters": "unit/test_parameters.py",
    "query-language.md csv parameters": "unit/test_parameters.py",
    "query-language.md sql registered": "unit/test_parameters.py",
    "query-language.md python filters": "e2e/test_user_filters.py",
    "query-language.md toml filters": "e2e/test_user_filters.py",
    "query-language.md sql filters": "e2e/test_user_filters.py",
    "server.md sh": "e2e/test_docs_served.py",
    "server.md python": "e2e/test_docs_served.py",
    "cli.md json": "unit/test_docs_commands.py",
    "delivery.md json": "unit/test_docs_commands.py",
    "visits.md csv": "unit/test_visits_page.py",
    "visits.md sql": "unit/test_visits_page.py",
    "visits.md sql registered": "unit/test_visits_page.py",
}
"""Where examples are run, by the words of their fence, or by their page and these."""
NOT_RUN = ("sh endless", "sh elsewhere")
"""Commands that end only when they are stopped, or that need a network, another program or this checkout."""
LISTED = ("text",)
"""Drawings, listings and messages: nothing that could be run."""
STREAM = {"format": "csv", "columns": {"object": "id", "x": "x", "y": "y"}}
EVERY = [
    pytest.param(page, block, id=f"{page.name}:{block.line}")
    for page in PAGES
    for block in blocks(page)
]


PROGRAM = typer.main.get_command(app)


def wrong_words(command: str) -> str:
    return wrong_words_for(command, PROGRAM)


def run_by(page: Path, kind: str) -> str:
    """The test that runs an example, below tests/; "" when none does."""
    return RUN_BY.get(f"{page.name} {kind}") or RUN_BY.get(kind, "")


@pytest.mark.parametrize(("page", "block"), EVERY)
def test_something_is_known_of_every_example(page: Path, block: Block, tmp_path: Path):
    if test := run_by(page, block.kind):
        code = (ROOT / "tests" / test).read_text(encoding="utf-8")
        assert page.name in code or "PAGES" in code or "tools/" in code
    elif block.kind in NOT_RUN:
        assert [wrong for one in block.commands if (wrong := not_there(one))] == []
    elif block.kind in LISTED:
        assert re.findall(r"^(?:\$ |fairway \w)", block.text, re.MULTILINE) == []
    else:
        assert block.kind in CHECKS, "no test runs it: see tests/kit/doc_blocks.py"
        CHECKS[block.kind](block.text, tmp_path)


def not_there(command: str) -> str:
    """What of a command that is not run is not so: options of fairway, targets of make, files of this checkout."""
    if "fairway " in command:
        return wrong_words(command[command.index("fairway ") :])
    words = command.partition(" #")[0].split()
    if words[0] == "make":
        known = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        return "" if words[1] in known else f"no target {words[1]}"
    files = [one for one in words if one.endswith(".py")]
    gone = [one for one in files if not (ROOT / one).is_file()]
    return f"no such file: {gone}" if gone else ""


def test_every_example_of_a_tutorial_is_typed_or_written():
    for page in (DOCS / "tutorials").glob("*.md"):
        kinds = {block.kind for block in blocks(page)}
        typed = {"console", "console until"}
        assert [kind for kind in kinds - typed if "." not in kind] == [], page.name


def test_code_is_fenced_so_that_something_is_known_of_it():
    assert {page.name: indented(page) for page in PAGES if indented(page)} == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_that_sentences_name_are_there(page: Path):
    """An option without its value, as sentences name it, is one that takes a value."""
    for command in spoken_of(page):
        assert (
            "COMMAND" in command
            or not wrong_words(command)
            or not wrong_words(f"{command} VALUE")
        ), command


def test_what_would_not_be_noticed_is_noticed():
    assert wrong_words("fairway run taxis --untill-idle")
    assert wrong_words("fairway query lst")
    assert wrong_words("fairway verify one two")
    assert not wrong_words("fairway run taxis --until-idle --home home # to its end")
    assert not_there("make no-such-target")
    assert not_there("python bench/none.py")
    assert run_by(Path("new.md"), "python") == ""


def settings_are_right(text: str, folder: Path) -> None:
    """Loads settings of the kinds that a block has, each as its file would be."""
    document = tomllib.loads(text)
    if streams := document.pop("streams", {}):
        for name, table in streams.items():
            stream_of_table(name, STREAM | table, folder)
    if "deliveries" in document:
        (folder / "deliveries.toml").write_text(text)
        assert set(load_deliveries(folder, ["taxis"])) == set(
            document.pop("deliveries")
        )
    if document:
        (folder / "operations.toml").write_text(text)
        kept_days = operations_of(folder, "retention", KeptDays)
        assert lineage_settings(folder) or notifier_of(folder) or kept_days


def it_stands_in_a_contract(text: str, _: Path) -> None:
    """Rows are kept for as long as the page says."""
    (stated,) = yaml.safe_load(text)["slaProperties"]
    table = stated["element"].partition(".")[0]
    contract = yaml.safe_load((ROOT / f"data_contracts/{table}.odcs.yaml").read_text())
    assert stated in contract["slaProperties"]


def it_is_found_as_a_format(text: str, _: Path) -> None:
    assert list(tomllib.loads(text)["project"]["entry-points"]) == [GROUP]


CHECKS: dict[str, Callable[[str, Path], None]] = {
    "toml": settings_are_right,
    "toml package": it_is_found_as_a_format,
    "yaml": it_stands_in_a_contract,
}
