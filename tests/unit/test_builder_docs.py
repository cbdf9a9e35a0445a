"""The examples of docs/builder.md run, and BBoxDB's listings on it are the plans of the golden texts."""

import json
import re
from pathlib import Path

import pytest

from st_common.query.builder import Joining, QueryBuilder
from st_common.query.plan import Plan

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "builder.md").read_text(encoding="utf-8")
LISTINGS = (
    "stock",
    "side_by_side",
    "island",
    "forest",
    "street",
    "street_filter",
    "reef",
    "airspace",
    "taxis",
    "convoy",
)


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What the page's examples leave behind, run in their order."""
    monkeypatch.chdir(tmp_path)
    found: dict[str, object] = {}
    for number, block in enumerate(
        re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL), start=1
    ):
        exec(compile(block, f"builder.md, example {number}", "exec"), found)
    return found


@pytest.mark.spec("B14", "B17")
def test_the_listings_of_the_page_are_the_golden_texts(names: dict[str, object]):
    for name in LISTINGS:
        text = (
            ROOT / "tests" / "golden" / f"bbox-{name.replace('_', '-')}.sql"
        ).read_text(encoding="utf-8")
        built = names[name]
        assert isinstance(built, QueryBuilder)
        assert built.build() == Plan.from_json(
            json.loads(text.strip().split("\n\n")[1])
        ), name


def test_the_page_names_every_step():
    steps = [
        name
        for kind in (QueryBuilder, Joining)
        for name in dir(kind)
        if not name.startswith("_")
    ]
    missing = {name for name in steps if not re.search(rf"\b{name}\b", PAGE)}
    prefixes = (
        "enlarge_",
        "filter",
        "plan",
        "tree",
        "alias",
        "name",
        "is_layer",
    )  # and fields
    assert {name for name in missing if not name.startswith(prefixes)} == set()
