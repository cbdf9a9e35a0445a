"""A real server with layers, vehicles of yesterday and today, and a browser that looks at its page."""

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.kit.page_browser import TIMEOUT_MS
from tests.kit.page_home import Served, make_home

SIZES = {"desktop": (1400, 900), "phone": (390, 844)}


@pytest.fixture(scope="session")
def chromium() -> str:
    """The program of a headless Chromium."""
    for name in ("chromium-headless-shell", "chromium", "google-chrome"):
        program = shutil.which(name)
        if program is not None:
            return program
    told = "no Chromium: apt-get install chromium-headless-shell"
    if os.environ.get("CI"):
        pytest.fail(f"{told}: under CI nothing may be left out", pytrace=False)
    pytest.skip(told)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that runs the engine of one stream; it and its engine have ended when the tests of a file are over."""
    with make_home(tmp_path_factory.mktemp("page")) as served:
        yield served


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    expect.set_options(timeout=TIMEOUT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        yield browser
        browser.close()


@pytest.fixture
def outside() -> list[str]:
    """Addresses that a page asked for beside its server: there are none."""
    return []


@pytest.fixture
def page(browser: Browser, served: Served, outside: list[str]) -> Iterator[Page]:
    """The page in a window of a desk, light, before it is opened; it has told no error of its own at the end."""
    yield from _page(browser, served, outside, "desktop")


@pytest.fixture
def phone(browser: Browser, served: Served, outside: list[str]) -> Iterator[Page]:
    """The page on a phone."""
    yield from _page(browser, served, outside, "phone")


@pytest.fixture
def page_in(
    browser: Browser, served: Served, outside: list[str], request: pytest.FixtureRequest
) -> Iterator[Page]:
    """The page where the browser's zone is that of the test's parameter."""
    yield from _page(browser, served, outside, "desktop", zone=request.param)


@pytest.fixture
def phone_in(
    browser: Browser, served: Served, outside: list[str], request: pytest.FixtureRequest
) -> Iterator[Page]:
    """The page on a phone, likewise."""
    yield from _page(browser, served, outside, "phone", zone=request.param)


def _page(
    browser: Browser,
    served: Served,
    outside: list[str],
    size: str,
    *,
    zone: str = "UTC",
) -> Iterator[Page]:
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="light",
        has_touch=size == "phone",
        locale="en-GB",
        timezone_id=zone,
        reduced_motion="reduce",  # a frame a second in place of sixty, without a graphics card
    )
    page = context.new_page()
    page.set_default_timeout(TIMEOUT_MS)
    broken: list[str] = []
    page.on("pageerror", lambda error: broken.append(str(error)))
    page.on("request", lambda request: _note(outside, served, request.url))
    yield page
    context.close()
    assert broken == []
    assert outside == []


def _note(outside: list[str], served: Served, url: str) -> None:
    if not url.startswith((served.url + "/", "blob:", "data:")):
        outside.append(url)
