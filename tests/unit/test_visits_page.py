"""docs/visits.md: every example runs on the real engine, and gives what the page shows."""

from itertools import pairwise
from pathlib import Path

import pytest

from st_common.answers.sql import sql
from st_common.cli.output import write
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.local import LocalEngine
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.doc_blocks import blocks
from tests.kit.log_writer import bare_log

PAGE = Path(__file__).resolve().parents[2] / "docs" / "visits.md"
TRUCKS = StreamSettings(
    name="trucks",
    format="csv",
    crs="planar",
    max_ahead_s=None,
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
)


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Home:
    home = Home(tmp_path_factory.mktemp("visits"))
    told = {block.kind: block.text for block in blocks(PAGE)}
    statements, records = told["sql registered"], told["csv"]
    register(home, {"trucks": TRUCKS}, parse(statements), owner="t")
    bare_log(home.log("trucks")).append(records.encode(), arrival_us=0)
    engine = LocalEngine(home, TRUCKS)
    while engine.batch():
        pass
    engine.close()
    return home


@pytest.mark.spec("C7")
def test_the_examples_of_the_page_on_visits_give_what_it_shows(home, capsys):
    page = PAGE.read_text(encoding="utf-8")
    told, shown = [(block.kind, block.text) for block in blocks(PAGE)], page
    assert sum(kind == "sql" for kind, _ in told) >= 7
    for (kind, text), (_, result) in pairwise(told):
        if kind == "sql":
            write(sql(home, text), "table")
            given = "".join(
                f"{line.rstrip()}\n" for line in capsys.readouterr().out.splitlines()
            )
            shown = shown.replace(
                f"{text}```\n\n```text\n{result}```",
                f"{text}```\n\n```text\n{given}```",
            )
    assert shown == page
