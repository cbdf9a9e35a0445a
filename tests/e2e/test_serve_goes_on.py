"""A server that nobody starts again: what is added or changed while it runs works at once, what is wrong is said."""

import contextlib
import http.server
import json
import subprocess
import sys
import threading
import time

import httpx
import pytest

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.spec("S8", "S3"),
    pytest.mark.timeout(240),
]

STREAM = """
[streams.{name}]
format = "ndjson"
columns = {{ object = "id", event_ts = "t", x = "x", y = "y" }}
crs = "planar"
time_unit = "{unit}"
max_ahead_s = "off"
engine = "local"
latest_flush_s = 1
"""
PARK = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "id": "park",
            "properties": {"kind": "park"},
            "geometry": {
                "type": "Polygon",
                "coordinates": [[[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]]],
            },
        }
    ],
}


class Served:
    """A server process in a folder, and requests to it."""

    def __init__(self, folder, process, address):
        self.folder, self.process = folder, process
        self.http = httpx.Client(base_url=address, timeout=60)

    def settings(self, *tables):
        whole = self.folder / "conf" / "new"
        whole.write_text("".join(tables))
        whole.rename(self.folder / "conf" / "streams.toml")

    def post(self, stream, *records):
        body = "".join(json.dumps(one) + "\n" for one in records)
        return self.http.post(f"/v1/streams/{stream}/fixes", content=body)

    def members(self, query):
        told = self.http.get(f"/v1/answers/{query}").json()
        return sorted(one["object"] for one in told.get("rows", ()))

    def status(self):
        return self.http.get("/v1/status").json()

    def stream(self, name):
        return next(one for one in self.status()["streams"] if one["stream"] == name)

    def said(self):
        return (self.folder / "said").read_text()


@pytest.fixture
def server(tmp_path):
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "streams.toml").write_text(STREAM.format(name="ships", unit="s"))
    command = [sys.executable, "-m", "st_common.cli", "--home", tmp_path / "home"]
    command += ["--conf", conf, "serve", "--port", "0"]
    with (tmp_path / "said").open("wb") as said:
        process = subprocess.Popen(
            [str(one) for one in command], stdout=said, stderr=subprocess.STDOUT
        )
    try:
        until(lambda: "http://" in (tmp_path / "said").read_text())
        address = (tmp_path / "said").read_text().split()[0]
        served = Served(tmp_path, process, address)
        with served.http:
            yield served
    finally:
        process.terminate()
        process.wait(60)


def until(is_so, seconds=90):
    end_s = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end_s
        time.sleep(0.1)


def fix(name, t, x, y):
    return {"id": name, "t": t, "x": x, "y": y}


def test_a_stream_a_query_a_layer_and_a_setting_are_new_while_it_runs(server):
    ships = STREAM.format(name="ships", unit="s")
    server.settings(ships, STREAM.format(name="vans", unit="s"))
    assert server.post("vans", fix("a", 1, 2, 2)).status_code == 202
    zone = "SELECT * FROM vans INSIDE (0, 0, 5, 5)"
    assert server.http.put("/v1/queries/zone", content=zone).status_code == 201
    server.post("vans", fix("a", 2, 2, 2), fix("b", 2, 8, 8))
    until(lambda: server.members("zone") == ["a"])

    layer = server.folder / "parks.geojson"
    layer.write_text(json.dumps(PARK))
    command = [sys.executable, "-m", "st_common.cli", "--home", server.folder / "home"]
    command += ["--conf", server.folder / "conf", "layer", "load", "parks", layer]
    command += ["--crs", "planar"]
    loaded = subprocess.run(
        [str(one) for one in command],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert loaded.returncode == 0, loaded.stderr
    joined = "SELECT * FROM vans v JOIN parks p ON ST_Intersects(v, p)"
    told = server.http.put("/v1/queries/parked", content=joined)
    assert told.status_code == 201, told.text
    server.post("vans", fix("b", 3, 8, 8), fix("c", 3, 20, 20))
    until(lambda: server.members("parked") == ["a", "b"])

    # Another unit holds for the next record, and the engine that has begun goes on by it.
    server.settings(ships, STREAM.format(name="vans", unit="ms"))
    assert server.post("vans", fix("d", 4_000, 3, 3)).status_code == 202
    until(lambda: server.members("zone") == ["a", "d"])
    (row,) = [
        one
        for one in server.http.get("/v1/objects", params={"stream": "vans"}).json()[
            "rows"
        ]
        if one["object"] == "d"
    ]
    assert row["event_ts"].startswith("1970-01-01T00:00:04")


def test_an_engine_starts_anew_by_changed_settings_or_goes_on_where_it_could_not(
    server,
):
    server.post("ships", fix("a", 1, 2, 2))
    until(lambda: server.stream("ships").get("pid") is not None)
    first = server.stream("ships").get("pid")
    ships = STREAM.format(name="ships", unit="s")
    server.settings(ships, 'attributes = { speed = "double" }\n')
    until(lambda: "its settings were changed" in server.said())
    server.post("ships", {**fix("b", 2, 3, 3), "speed": 2.5})
    until(lambda: server.stream("ships").get("pid") not in (None, first))
    zone = "SELECT object, speed FROM ships INSIDE (0, 0, 9, 9) WHERE speed > 2"
    assert server.http.put("/v1/queries/fast", content=zone).status_code == 201
    server.post("ships", {**fix("b", 3, 3, 3), "speed": 2.5})
    until(lambda: server.members("fast") == ["b"])
    second = server.stream("ships").get("pid")
    server.settings(ships, 'attributes = { speed = "double" }\nlateness_s = 60\n')
    until(lambda: "goes on by the settings that it has" in server.said())
    server.post("ships", {**fix("c", 4, 3, 3), "speed": 2.5})
    until(lambda: server.members("fast") == ["b", "c"])
    assert server.stream("ships").get("pid") == second


@pytest.mark.parametrize("is_whole_file", [False, True])
def test_wrong_settings_stop_their_stream_alone_and_status_says_so(
    server, is_whole_file
):
    ships = STREAM.format(name="ships", unit="s")
    vans = STREAM.format(name="vans", unit="s")
    server.settings(ships, vans)
    assert server.post("vans", fix("a", 1, 2, 2)).status_code == 202
    server.settings(ships, vans.replace("time_unit", "time_unti"))
    told = server.post("vans", fix("a", 2, 2, 2))
    assert told.status_code == 400
    assert told.json()["error"].endswith("stream 'vans': unknown key 'time_unti'")
    assert told.json()["hint"] == "did you mean 'time_unit'?"
    assert server.post("ships", fix("a", 2, 2, 2)).status_code == 202
    broken = server.status()["broken_streams"]
    assert list(broken) == ["vans"]
    assert "time_unti" in broken["vans"]
    server.settings(ships, vans)
    assert server.status()["broken_streams"] == {}
    server.settings(ships, "[streams.vans\n")
    assert server.post("ships", fix("a", 3, 2, 2)).status_code == 202
    assert "CONF/streams.toml" in server.status()["settings_error"]
    server.settings(ships, vans)
    assert server.status()["settings_error"] is None


@contextlib.contextmanager
def feed():
    """A feed that is not there at first; its address, and what it was asked."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(1)
            found = len(asked) > 1
            body = f'{{"id": "a", "t": {len(asked)}, "x": 1, "y": 1}}\n'.encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/feed"
    finally:
        server.shutdown()
        server.server_close()


def test_a_source_is_new_while_it_runs_and_one_404_does_not_end_it(server):
    with feed() as url:
        ships = STREAM.format(name="ships", unit="s")
        source = f'[streams.ships.sources.web]\nkind = "http"\nurl = "{url}"\nevery_s = 0.2\n'
        server.settings(ships, source)
        until(lambda: server.stream("ships")["sources"])
        until(lambda: server.stream("ships")["sources"][0]["records"] > 2)
        assert server.stream("ships")["sources"][0]["reconnects"] == 1
        server.settings(ships)
        until(lambda: server.http.get("/v1/status").status_code == 200)
