"""What lies below a home's layers: the world, nothing below planes, tiles of somebody else; and arrow heads above."""

import io
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from tests.kit.page_browser import TIMEOUT_MS, at, until
from tests.kit.page_home import Served, serve_home

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.spec("P10")]

STREAM = """
[streams.{name}]
format = "csv"
columns = {{ object = "object", event_ts = "t", x = "x", y = "y" }}
time_unit = "iso"
max_ahead_s = "off"
engine = "local"
moving = true
{more}
"""
BEGIN = datetime(2026, 6, 20, tzinfo=UTC)
BERLIN = (13.40, 52.52)
EAST, NORTH, STILL = "east", "north", "still"
RENDERED = """layer => fairwayPage.place.view.map.getLayer(layer) === undefined
    ? 0 : fairwayPage.place.view.map.queryRenderedFeatures({ layers: [layer] }).length"""
AT_REST = "() => fairwayPage.place.view.map.loaded() && fairwayPage.place.view.map.areTilesLoaded()"


def fixes(*rows: tuple[str, int, float, float]) -> bytes:
    """Objects with seconds and places."""
    lines = [
        f"{name},{(BEGIN + timedelta(seconds=second)).isoformat()},{x},{y}"
        for name, second, x, y in rows
    ]
    return "\n".join(["object,t,x,y", *lines, ""]).encode()


def moving() -> bytes:
    """Three cars in Berlin: one has come from the west, one from the south, one stands."""
    lon, lat = BERLIN
    return fixes(
        (EAST, 0, lon - 0.001, lat),
        (NORTH, 0, lon, lat + 0.0005),
        (STILL, 0, lon, lat - 0.001),
        (EAST, 1, lon, lat),
        (NORTH, 1, lon, lat + 0.001),
        (STILL, 1, lon, lat - 0.001),
    )


@pytest.fixture(scope="module")
def cars(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A home without a layer whose cars are in Berlin."""
    folder = tmp_path_factory.mktemp("cars")
    with serve_home(folder, STREAM.format(name="cars", more="")) as home:
        home.send(moving(), "cars")
        yield home


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A home whose only stream lies on a plane."""
    folder = tmp_path_factory.mktemp("plane")
    with serve_home(
        folder, STREAM.format(name="robots", more='crs = "planar"')
    ) as home:
        home.send(fixes(("r1", 0, 0, 0), ("r2", 0, 100, 100)), "robots")
        yield home


@contextmanager
def opened(
    browser: Browser, served: Served, address: str = "", theme: str = "light"
) -> Iterator[tuple[Page, list[str]]]:
    """The page of a home, and what it asked others for; its own errors fail the test."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 800},
        color_scheme=theme,
        timezone_id="UTC",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.set_default_timeout(TIMEOUT_MS)
    outside: list[str] = []
    broken: list[str] = []
    page.on("pageerror", lambda error: broken.append(str(error)))

    def note(url: str) -> None:
        if not url.startswith((served.url + "/", "blob:", "data:")):
            outside.append(url)

    page.on("request", lambda request: note(request.url))
    page.goto(f"{served.url}/#{address}")
    yield page, outside
    context.close()
    assert broken == []


def colour_at(page: Page, x: float, y: float) -> tuple[int, ...]:
    """The colour of a pixel of the window."""
    shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    return shot.getpixel((round(x), round(y)))


def wait_for(page: Page, stream: str, count: int) -> None:
    until(
        page,
        f"() => fairwayPage.place.view?.streams.get('{stream}')?.count >= {count}",
    )


def test_a_home_without_a_layer_lies_on_the_coast_and_borders_of_the_world(
    browser: Browser, cars: Served
):
    with opened(browser, cars, "map=13.4,52.5,3") as (page, outside):
        wait_for(page, "cars", 3)
        page.wait_for_function(f"() => ({RENDERED})('world:borders') > 0")
        assert page.evaluate(RENDERED, "world:land") > 0
        until(page, AT_REST)
        for lon, lat in ((19.5, 57), (19.6, 62), (-4, 45.5), (34, 43.5), (3, 68)):
            assert colour_at(page, *at(page, lon, lat)) == (181, 211, 230), (lon, lat)
        germany = at(page, 10.5, 51.0)
        assert colour_at(page, *germany) == (243, 241, 234)
        legend = page.get_by_label("Legend")
        expect(legend).to_contain_text("Natural Earth")
        page.get_by_label("Show it dark").click()
        until(page, AT_REST)
        page.wait_for_function(f"() => ({RENDERED})('world:borders') > 0")
        assert colour_at(page, *germany) == (21, 24, 28)
        assert outside == []


def test_land_that_goes_across_180_degrees_and_around_the_pole_is_whole(
    browser: Browser, cars: Served
):
    with opened(browser, cars, "map=179,0,1") as (page, _):
        page.wait_for_function(f"() => ({RENDERED})('world:borders') > 0")
        land, water = (243, 241, 234), (181, 211, 230)
        for lon, lat, colour in (
            (178, 67.5, land),
            (-177.5, 67.5, land),
            (-100, -82, land),
            (179, 55, water),
            (-179, 75, water),
        ):
            page.evaluate(
                "center => fairwayPage.place.view.map.jumpTo({ center, zoom: 3 })",
                [lon, lat],
            )
            until(page, AT_REST)
            assert colour_at(page, *at(page, lon, lat)) == colour, (lon, lat)


def test_nothing_of_the_world_lies_below_planes(browser: Browser, plane: Served):
    with opened(browser, plane) as (page, _):
        wait_for(page, "robots", 2)
        until(page, AT_REST)
        until(page, "() => fairwayPage.app.get().page !== null")
        layers = page.evaluate(
            "() => fairwayPage.place.view.map.getStyle().layers.map(one => one.id)"
        )
        assert [one for one in layers if one.startswith(("world", "ground:"))] == []
        legend = page.get_by_label("Legend")
        expect(legend).to_contain_text("object")
        expect(legend).not_to_contain_text("Natural Earth")


def test_who_moves_is_an_arrow_head_that_points_where_it_goes(
    browser: Browser, cars: Served
):
    lon, lat = BERLIN
    with opened(browser, cars, f"map={lon},{lat},16") as (page, _):
        wait_for(page, "cars", 3)
        until(page, "() => fairwayPage.app.get().drawing.hasArrows")
        until(page, AT_REST)
        expect(page.get_by_label("Legend")).to_contain_text("moves this way")
        page.wait_for_timeout(1500)  # they glide to where they are
        edge = (255, 255, 255)
        land = (243, 241, 234)
        x, y = at(page, lon, lat)
        for ahead, (dx, dy), place in (
            ("east", (1, 0), (x, y)),
            ("north", (0, -1), at(page, lon, lat + 0.001)),
        ):
            before = colour_at(page, place[0] + 4 * dx, place[1] + 4 * dy)
            behind = colour_at(page, place[0] - 6 * dx, place[1] - 6 * dy)
            assert before not in (edge, land), ahead
            assert behind == land, ahead
        x, y = at(page, lon, lat - 0.001)
        around = [(5, 0), (-5, 0), (0, 5), (0, -5)]
        assert {colour_at(page, x + dx, y + dy) for dx, dy in around} == {land}


def test_who_was_gone_before_the_page_was_opened_is_nowhere(
    browser: Browser, tmp_path: Path
):
    settings = STREAM.format(name="cars", more="").replace(
        'y = "y" }', 'y = "y", gone = "gone" }'
    )
    rows = ["object,t,x,y,gone"]
    rows += ["left,2026-06-20T00:00:00Z,13.4,52.5,", "left,2026-06-20T00:00:01Z,13.4,52.5,true"]  # fmt: skip
    rows += ["here,2026-06-20T00:00:02Z,13.4,52.5,"]
    with serve_home(tmp_path, settings) as served:
        served.send("\n".join([*rows, ""]).encode(), "cars")
        with opened(browser, served) as (page, _):
            wait_for(page, "cars", 2)
            places = page.evaluate(
                """() => ['left', 'here'].map(
                    name => fairwayPage.place.view.placeOf({ stream: 'cars', name }))"""
            )
            assert places == [None, [13.4, 52.5]]


def test_the_legend_explains_what_is_on_the_map_now(browser: Browser, cars: Served):
    import httpx

    lon, lat = BERLIN
    near = f"SELECT * FROM cars KNN (1, {lon}, {lat})"
    httpx.put(
        f"{cars.url}/v1/queries/near", content=near, timeout=60
    ).raise_for_status()
    with opened(browser, cars, f"map={lon},{lat},14&query=") as (page, _):
        wait_for(page, "cars", 3)
        legend = page.get_by_label("Legend")
        expect(legend).to_contain_text("object")
        for words in ("nearest to here", "region", "in a chosen answer", "came in"):
            expect(legend).not_to_contain_text(words)
        page.get_by_text("near", exact=True).first.click()
        for words in ("nearest to here", "in a chosen answer", "came in"):
            expect(legend).to_contain_text(words)
        expect(legend).not_to_contain_text("region")
        page.get_by_label("Let near go").click()
        expect(legend).not_to_contain_text("nearest to here")


def tile() -> bytes:
    """A picture of one colour."""
    drawn = io.BytesIO()
    Image.new("RGB", (256, 256), (200, 80, 160)).save(drawn, "png")
    return drawn.getvalue()


class _Tiles(BaseHTTPRequestHandler):
    """Gives the same tile everywhere, and none where the server is told so."""

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers.get("Referer")))  # type: ignore[attr-defined]
        self.send_response(503 if self.server.fails else 200)  # type: ignore[attr-defined]
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Content-Type", "image/png")
        self.end_headers()
        self.wfile.write(tile())

    def log_message(self, *_args: object) -> None:
        """Nothing."""


@contextmanager
def tile_server() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Tiles)
    server.asked, server.fails = [], False  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join(60)
        server.server_close()


def test_tiles_of_somebody_else_lie_below_in_place_of_the_world(
    browser: Browser, tmp_path: Path
):
    with tile_server() as tiles:
        origin = f"http://127.0.0.1:{tiles.server_address[1]}"
        conf = tmp_path / "home" / "conf"
        conf.mkdir(parents=True)
        settings = {
            "tile_url": f"{origin}/{{z}}/{{x}}/{{y}}.png",
            "tile_attribution": "© Somebody <b>",
        }
        lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
        (conf / "operations.toml").write_text("\n".join(["[server]", *lines]))
        with serve_home(tmp_path, STREAM.format(name="cars", more="")) as served:
            served.send(moving(), "cars")
            with opened(browser, served, "map=13.4,52.5,6") as (page, outside):
                legend = page.get_by_label("Legend")
                expect(legend).to_contain_text("© Somebody <b>")
                until(
                    page,
                    "() => fairwayPage.place.view.map.getLayer('ground:tiles') !== undefined",
                )
                until(page, AT_REST)
                assert colour_at(page, *at(page, 10.5, 51.0)) == (200, 80, 160)
                assert page.evaluate(RENDERED, "world:land") == 0
                expect(legend).not_to_contain_text("Natural Earth")
                expect(legend).not_to_contain_text("do not come")
                assert outside
                assert all(url.startswith(f"{origin}/") for url in outside)
                assert {told for _, told in tiles.asked} == {f"{served.url}/"}
                tiles.fails = True
                page.evaluate("() => fairwayPage.place.view.map.jumpTo({ zoom: 9 })")
                expect(legend).to_contain_text("tiles do not come")
