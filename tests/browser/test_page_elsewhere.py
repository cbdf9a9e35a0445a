"""A page of somebody else, on another origin: its browser reads features where a setting names it, and nowhere else."""

import contextlib
import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from playwright.sync_api import Browser

from st_common.config.home import Home
from st_common.layers.load import load
from st_common.server.installation import Installation
from tests.kit.page_browser import TIMEOUT_MS
from tests.kit.server_http import served

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.spec("P10")]
MAPLIBRE = Path(__file__).parents[2] / "web/node_modules/maplibre-gl/dist"
PAGE = """<!doctype html>
<div id="map" style="width: 400px; height: 400px"></div>
<script type="module">
import {{ Map, setWorkerUrl }} from './maplibre-gl.mjs';
setWorkerUrl('./maplibre-gl-worker.mjs');
const parks = {{ type: 'geojson', data: '{items}' }};
const layer = {{ id: 'parks', type: 'fill', source: 'parks' }};
const style = {{ version: 8, sources: {{ parks }}, layers: [layer] }};
const map = new Map({{ container: 'map', style, center: [1, 1], zoom: 5 }});
map.on('error', (event) => (window.wrong = String(event.error)));
map.on('idle', () => {{
    const drawn = map.queryRenderedFeatures({{ layers: ['parks'] }});
    window.drawn = drawn.map((one) => one.properties.kind);
}});
</script>
"""
RING = [[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]
PARK = {
    "type": "Feature",
    "id": "p",
    "properties": {"kind": "park"},
    "geometry": {"type": "Polygon", "coordinates": [RING]},
}


class _Quiet(SimpleHTTPRequestHandler):
    extensions_map: ClassVar[dict[str, str]] = {
        **SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
    }

    def log_message(self, *_args: object) -> None:
        """Nothing."""


@contextlib.contextmanager
def page_elsewhere(folder: Path) -> Iterator[str]:
    """A server of files on an origin of its own."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join(60)
        server.server_close()


@pytest.mark.parametrize("is_named", [True, False])
def test_a_map_elsewhere_shows_features_where_its_origin_is_named(
    browser: Browser, tmp_path: Path, is_named: bool
) -> None:
    site, conf = tmp_path / "site", tmp_path / "conf"
    site.mkdir()
    conf.mkdir()
    for file in MAPLIBRE.glob("*.mjs"):
        (site / file.name).symlink_to(file)
    (conf / "streams.toml").write_text("")
    (tmp_path / "parks.geojson").write_text(
        json.dumps({"type": "FeatureCollection", "features": [PARK]})
    )
    place = Installation(home=Home(tmp_path / "home"), conf=conf)
    load(place.home, "parks", tmp_path / "parks.geojson", group="default")
    with page_elsewhere(site) as origin:
        if is_named:
            table = f"[server]\ncors_origins = [{json.dumps(origin)}]\n"
            (conf / "operations.toml").write_text(table)
        with served(place) as client:
            items = f"{client.base_url}/v1/ogc/collections/layers.parks/items"
            (site / "index.html").write_text(PAGE.format(items=items))
            page = browser.new_page()
            page.goto(origin)
            seen = "drawn" if is_named else "wrong"
            has = f"() => window.{seen} !== undefined && window.{seen}.length > 0"
            page.wait_for_function(has, timeout=TIMEOUT_MS)
            told = page.evaluate("() => [window.drawn ?? [], window.wrong ?? '']")
            page.close()
    if is_named:
        assert (set(told[0]), told[1]) == ({"park"}, "")
    else:
        assert told[0] == []
        assert "Failed to fetch" in told[1]
