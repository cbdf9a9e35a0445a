"""The site of docs/: every page can be reached, no link leads nowhere, and nothing is fetched from elsewhere."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tools.decisions import page

pytestmark = pytest.mark.spec("S11")

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


class _Settings(yaml.SafeLoader):
    """Reads the settings of the site, and of functions that they name only that they are there."""


_Settings.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def _pages(nav: object) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        for part in nav.values():
            yield from _pages(part)
    elif isinstance(nav, list):
        for part in nav:
            yield from _pages(part)


def test_every_page_can_be_reached() -> None:
    settings = yaml.load((ROOT / "mkdocs.yml").read_text(), _Settings)
    listed = set(_pages(settings["nav"]))
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    decisions = {page for page in pages if page.startswith("adr/0")}
    assert listed == pages - decisions


def test_every_decision_is_listed_by_its_title() -> None:
    assert (DOCS / "adr" / "index.md").read_text() == page(DOCS / "adr")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built anew in a folder of its own; a link that leads nowhere fails it."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(DOCS, folder / "docs")
    (folder / "mkdocs.yml").write_text((ROOT / "mkdocs.yml").read_text())
    program = Path(sys.executable).with_name("zensical")
    done = subprocess.run(
        [program, "build", "--strict"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


def test_pages_fetch_nothing_from_elsewhere(site: Path) -> None:
    loaded = re.compile(
        r"""<(?:script|link|img|iframe)[^>]*?(?:src|href)="?(https?://[^" >]+)"""
    )
    told = {
        (page.name, address)
        for page in site.rglob("*.html")
        for address in loaded.findall(page.read_text())
    }
    assert not told


def test_the_grammar_of_examples_is_shown_as_code(site: Path) -> None:
    page = (site / "query-language.html").read_text()
    assert "```" not in re.sub(r"<code>.*?</code>", "", page, flags=re.DOTALL)
