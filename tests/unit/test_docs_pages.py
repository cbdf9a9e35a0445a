"""The pages of docs/ say what is so: their examples run, their lists are whole, their links lead somewhere."""

import re
from pathlib import Path

import pytest

from st_common.config.streams import load_streams
from st_common.contracts import contract_names, load_contract
from st_common.formats import ais, gtfs_rt, hfp_columns, nmea, sbs1

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *DOCS.glob("tutorials/*.md")])


def test_the_examples_of_how_it_works_run_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(
        r"```python\n(.*?)```",
        (DOCS / "how-it-works.md").read_text(encoding="utf-8"),
        re.DOTALL,
    )
    assert len(blocks) >= 7
    names: dict[str, object] = {}
    for number, block in enumerate(blocks, start=1):
        exec(compile(block, f"how-it-works, example {number}", "exec"), names)


@pytest.mark.spec("B7")
def test_the_settings_of_formats_can_be_used_and_their_columns_are_all_told(tmp_path):
    page = (DOCS / "formats.md").read_text(encoding="utf-8")
    settings = "".join(re.findall(r"```toml\n(.*?)```", page, re.DOTALL))
    path = tmp_path / "streams.toml"
    path.write_text(settings, encoding="utf-8")
    streams = load_streams(path)
    assert streams.broken == {}
    every = re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    sections = [section for section in every if "```toml\n" in section]
    columns = {
        "gtfs-rt": gtfs_rt.COLUMNS,
        "ais": ais.COLUMNS,
        "sbs1": sbs1.COLUMNS,
        "hfp": hfp_columns.COLUMNS,
        "nmea": nmea.COLUMNS,
    }
    assert columns.keys() < {stream.format for stream in streams.values()}
    named = [
        (section, streams[name])
        for section in sections
        for name in re.findall(r"^\[streams\.(\w+)\]", section, re.MULTILINE)
    ]
    assert len(named) == len(streams)
    for section, stream in named:
        assert f'format = "{stream.format}"' in section
        if (known := columns.get(stream.format)) is None:
            continue  # columns are the keys of its JSON
        first = re.findall(
            r"^\|(.*?)\|", section.partition("| reason |")[0], re.MULTILINE
        )
        told = re.findall(r"`(\w+)`", "".join(first))
        assert sorted(told) == sorted(known)


@pytest.mark.parametrize("name", contract_names())
def test_every_column_of_every_contract_is_described(name: str) -> None:
    page = (DOCS / "data-contracts.md").read_text(encoding="utf-8")
    section = re.search(rf"^## `{name}`.*?(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    assert section is not None
    described = re.findall(r"^\| `(\w+)` \|", section[0], re.MULTILINE)
    assert described == [column.name for column in load_contract(name).columns]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(
        r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")
    ):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_index_lists_every_page_once():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[[^]]*\]\(([^)]*)\)", index, re.MULTILINE)
    pages = [str(page.relative_to(DOCS)) for page in PAGES if page.name != "index.md"]
    pages.append("adr/index.md")
    assert sorted(name for name in listed if name.endswith(".md")) == sorted(pages)


def test_every_package_of_the_library_is_in_the_architecture() -> None:
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    packages = [path.parent.name for path in (ROOT / "st_common").glob("*/__init__.py")]
    missing = [
        name
        for name in packages
        if f"`{name}/`" not in page and f"`{name}.py`" not in page
    ]
    assert missing == []


def test_decisions_have_a_number_each():
    numbers = [path.name[:4] for path in (ROOT / "docs" / "adr").glob("*.md")]
    assert len(set(numbers)) == len(numbers)
