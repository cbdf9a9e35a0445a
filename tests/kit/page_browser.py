"""What tests do with a page in a browser: wait, find a place of the map in the window, read the statement."""

from playwright.sync_api import Page

TIMEOUT_MS = 180_000
"""Of whatever is waited for: enough on a machine that is busy, where what answers gives way to what draws."""


def until(page: Page, script: str) -> None:
    """Waits until a function of JavaScript gives something true."""
    page.wait_for_function(script, timeout=TIMEOUT_MS)


def at(page: Page, lon: float, lat: float) -> tuple[float, float]:
    """Where a place is in the window, in pixels."""
    x, y = page.evaluate(
        """([lon, lat]) => {
            const { map } = fairwayPage.place.view, { x, y } = map.project([lon, lat]);
            const box = map.getCanvas().getBoundingClientRect();
            return [box.x + x, box.y + y];
        }""",
        [lon, lat],
    )
    return x, y


def statement(page: Page) -> str:
    """The statement as it stands in the panel."""
    return page.get_by_label("The statement").input_value()
