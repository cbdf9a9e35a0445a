"""Sources as they run, against real sockets, pipes, files, servers and brokers on this machine."""

import asyncio
import contextlib
import gzip
import http.server
import json
import os
import socket
import threading
import zlib

import pytest

from st_common.config.home import Home
from st_common.decode import decode
from st_common.errors import ConfigError
from st_common.log.log import Log
from tests.kit.feeding import (
    capturing,
    killed,
    lines_of,
    payloads_of,
    stream_with,
    until,
    until_records,
)
from tests.kit.mqtt_broker import mqtt_broker
from tests.kit.ports import free_port

pytestmark = pytest.mark.spec("B6")


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "home")


async def connected(port):
    """A connection, as soon as somebody listens."""
    while True:
        try:
            return await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.01)


async def send(port, *portions):
    _, writer = await connected(port)
    for one in portions:
        writer.write(one)
        await writer.drain()
        await asyncio.sleep(0.02)
    writer.close()
    await writer.wait_closed()


def test_tcp_takes_lines_of_several_connections_each_with_its_header(home):
    port = free_port()
    stream = stream_with({"kind": "tcp", "listen": f":{port}"})

    async def run():
        async with capturing(home, stream) as capture:
            await asyncio.gather(
                send(port, b"id,t,x,y\na,1,2", b",3\nb,1,2,3"),
                send(port, b"t,id,x,y\n1,c,2,3\n"),
            )
            await until_records(capture, 3)

    asyncio.run(run())
    assert sorted(lines_of(home))[:3] == ["1,c,2,3", "a,1,2,3", "b,1,2,3"]
    assert all(b"id," in one or b",id" in one for one in payloads_of(home))
    assert all(
        one.live for one in Log(home.log("ships")).segments(0) if not one.control
    )


def test_tcp_connects_again_when_the_other_end_breaks_off(home):
    port = free_port()
    stream = stream_with(
        {"kind": "tcp", "connect": f"127.0.0.1:{port}", "retry_max_s": 0.1}
    )
    served = []

    async def serve(_, writer):
        served.append(1)
        writer.write(b"id,t,x,y\na,%d,2,3\n" % len(served))
        await writer.drain()
        writer.close()

    async def run():
        async with capturing(home, stream) as capture:
            await until(lambda: capture.note.reconnects >= 1)  # nobody listens yet
            async with await asyncio.start_server(serve, "127.0.0.1", port):
                note = await until_records(capture, 3)
            assert note.reconnects >= 3

    asyncio.run(run())
    assert lines_of(home)[:3] == ["a,1,2,3", "a,2,2,3", "a,3,2,3"]


def test_udp_takes_a_datagram_as_a_message(home):
    port = free_port()
    stream = stream_with({"kind": "udp", "listen": f":{port}"}, format="ndjson")

    async def run():
        async with capturing(home, stream) as capture:
            with socket.socket(type=socket.SOCK_DGRAM) as sender:
                while not capture.note.records:  # what comes before it listens is lost
                    sender.sendto(b'{"id": "a",\n "t": 1}', ("127.0.0.1", port))
                    await asyncio.sleep(0.02)

    asyncio.run(run())
    assert set(lines_of(home)) == {'{"id": "a",  "t": 1}'}


def test_a_pipe_is_read_whoever_opens_it(home, tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    stream = stream_with({"kind": "pipe", "path": str(path)})

    async def run():
        async with capturing(home, stream) as capture:
            for number in (1, 2):
                await asyncio.to_thread(
                    path.write_bytes, b"id,t,x,y\na,%d,2,3\n" % number
                )
                await until_records(capture, number)
                await asyncio.sleep(0.2)

    asyncio.run(run())
    assert lines_of(home) == ["a,1,2,3", "a,2,2,3"]


def test_what_is_no_pipe_is_refused(home, tmp_path):
    with pytest.raises(ConfigError, match="is no named pipe"):
        asyncio.run(
            _started(home, stream_with({"kind": "pipe", "path": str(tmp_path)}))
        )


async def _started(home, stream):
    async with capturing(home, stream):
        pass


def test_files_are_read_as_they_come_and_as_they_grow_each_line_once_after_a_kill_too(
    home, tmp_path
):
    folder = tmp_path / "drop"
    folder.mkdir()
    stream = stream_with({"kind": "files", "path": str(folder), "every_s": 0.1})
    one, two, packed = folder / "one.csv", folder / "two.csv", folder / "three.csv.gz"
    one.write_text("id,t,x,y\na,1,2,3\na,2,2")

    async def run():
        async with killed(home, stream) as capture:
            await until_records(capture, 1)
            with one.open("a") as file:
                file.write(",3\na,3,2,3\n")
            await until_records(capture, 3)
        two.write_text("id,t,x,y\nb,1,2,3\nb,2,2,3")
        packed.write_bytes(gzip.compress(b"id,t,x,y\nc,1,2,3\n"))
        for path in (two, packed):
            os.utime(path, (1, 1))  # nobody writes to them any more
        async with capturing(home, stream) as capture:
            await until_records(capture, 3)
            await asyncio.sleep(0.3)
        async with capturing(home, stream):
            await asyncio.sleep(0.3)

    asyncio.run(run())
    assert sorted(lines_of(home)) == [
        "a,1,2,3", "a,2,2,3", "a,3,2,3", "b,1,2,3", "b,2,2,3", "c,1,2,3"
    ]  # fmt: skip


@contextlib.contextmanager
def served(answer):
    """A server of HTTP that answers by a function of the headers: status, headers, body."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            status, headers, body = answer(self.headers)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": len(body)}.items():
                self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/feed"
    finally:
        server.shutdown()
        server.server_close()


def test_http_asks_only_for_what_has_changed_and_goes_on_after_errors(
    home, monkeypatch
):
    monkeypatch.setenv("FEED_TOKEN", "hidden")
    asked = []

    def answer(headers):
        asked.append((headers["Authorization"], headers["If-None-Match"]))
        match len(asked):
            case 1:
                return 200, {"ETag": '"one"'}, b"id,t,x,y\na,1,2,3\n"
            case 2:
                return 304, {}, b""
            case 3:
                return 503, {}, b"busy"
            case 4:
                return 200, {"ETag": '"two"'}, b"id,t,x,y\na,1,2,3\n"  # as it was
            case _:
                return 200, {"ETag": '"two"'}, b"id,t,x,y\na,2,2,3\nb,2,2,3\n"

    async def run():
        with served(answer) as url:
            stream = stream_with(
                {"kind": "http", "url": url, "every_s": 0.1, "token_env": "FEED_TOKEN"}
            )
            async with capturing(home, stream) as capture:
                await until_records(capture, 3)
                await until(lambda: len(asked) >= 7)
                assert capture.note.error is None
                assert capture.note.reconnects == 1

    asyncio.run(run())
    assert {token for token, _ in asked} == {"Bearer hidden"}
    assert [match for _, match in asked[:4]] == [None, '"one"', '"one"', None]
    # After it was connected anew nobody knows any more what the feed said before: fixes that are told twice count once.
    assert lines_of(home) == ["a,1,2,3", "a,1,2,3", "a,2,2,3", "b,2,2,3"]


def test_what_http_packs_is_unpacked_and_a_bomb_is_passed_over(home):
    asked, fix = [], b"id,t,x,y\na,1,2,3\n"
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    parts = [packer.compress(fix)]
    parts += [packer.compress(bytes(1 << 20)) for _ in range(320)]
    bomb = b"".join([*parts, packer.flush()])

    def answer(headers):
        asked.append(headers["Accept-Encoding"])
        match len(asked):
            case 1:
                return 200, {"Content-Encoding": "gzip"}, bomb
            case 2:
                return 200, {"Content-Encoding": "gzip"}, gzip.compress(fix)[:-9]
            case 3:
                return 200, {"Content-Encoding": "zstd"}, b"(\xb5/\xfd"
            case _:
                return 200, {"Content-Encoding": "gzip"}, gzip.compress(fix)

    async def run():
        with served(answer) as url:
            stream = stream_with({"kind": "http", "url": url, "every_s": 0.1})
            async with capturing(home, stream) as capture:
                await until(lambda: capture.note.error)
                assert "no records are packed so well" in capture.note.error
                await until_records(capture, 1)

    asyncio.run(run())
    assert set(asked) == {"gzip"}
    assert lines_of(home) == ["a,1,2,3"]


@pytest.mark.parametrize("answers", [(404, 200), (200, 404, 404, 200), (200, 403, 200)])
def test_a_feed_that_is_away_for_a_while_is_asked_again_and_status_says_why(
    home, answers
):
    asked = []

    def answer(_headers):
        asked.append(1)
        status = answers[min(len(asked), len(answers)) - 1]
        return status, {}, f"id,t,x,y\na,{len(asked)},2,3\n".encode()

    async def run():
        with served(answer) as url:
            stream = stream_with({"kind": "http", "url": url, "every_s": 0.1})
            async with capturing(home, stream) as capture:
                away = next(one for one in answers if one != 200)
                if answers[0] != 200:
                    await until(lambda: capture.note.error)
                    assert capture.note.error == f"{url} answers {away}"
                await until(lambda: len(asked) > len(answers) + 1)
                await until_records(capture, len(answers))
                assert capture.note.error is None
                assert capture.note.reconnects == sum(one != 200 for one in answers)

    asyncio.run(run())


@pytest.mark.spec("B7")
def test_a_feed_of_gtfs_realtime_is_polled_and_its_vehicles_are_fixes(home, shared):
    """Three snapshots of King County one after the other; vehicles that have not moved since count once."""
    folder = shared / "data" / "gtfsrt-kingcounty"
    files = [folder / f"king-county-metro-{number}.pb" for number in (1, 2, 3)]
    asked = []

    def answer(_headers):
        asked.append(1)
        return 200, {}, files[min(len(asked), 3) - 1].read_bytes()

    async def run():
        with served(answer) as url:
            stream = stream_with(
                {"kind": "http", "url": url, "every_s": 0.1},
                format="gtfs-rt",
                columns={"object": "vehicle_id", "event_ts": "timestamp"},
                crs="EPSG:4326",
                time_unit=None,
            )
            async with capturing(home, stream) as capture:
                await until(lambda: len(asked) >= 5)
            return stream, capture.note.records

    stream, records = asyncio.run(run())
    decoded = [
        decode(payload, stream, arrival_us=0) for payload in payloads_of(home, "ships")
    ]
    assert len(decoded) == 3
    assert sum(one.rows for one in decoded) == records
    assert [len(one.fixes) for one in decoded] == [
        vehicles_in(file.read_bytes()) for file in files
    ]


def vehicles_in(message):
    """How many entities have a vehicle with a position, by the bindings."""
    from google.transit import gtfs_realtime_pb2

    feed = gtfs_realtime_pb2.FeedMessage.FromString(message)
    places = [one.vehicle.position for one in feed.entity if one.HasField("vehicle")]
    return sum(bool(place.latitude or place.longitude) for place in places)


def test_http_that_will_never_answer_ends_the_capture(home):
    async def run():
        with served(lambda _: (403, {}, b"")) as url:
            async with asyncio.timeout(30):
                from st_common.sources.capture import capture_all

                await capture_all(
                    home,
                    stream_with({"kind": "http", "url": url}),
                    ("feed",),
                    asyncio.Event(),
                )

    with pytest.raises(ConfigError, match="answers 403"):
        asyncio.run(run())


def test_a_websocket_is_greeted_and_tells(home):
    from websockets.asyncio.server import serve

    greeted = []

    async def feed(socket):
        greeted.append(await socket.recv())
        await socket.send('{"id": "a", "t": 1}')
        await socket.send(b'{"id": "b", "t": 1}')

    async def run():
        async with serve(feed, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            source = {
                "kind": "websocket",
                "url": f"ws://127.0.0.1:{port}",
                "hello": "all",
                "retry_max_s": 0.1,
            }
            async with capturing(home, stream_with(source, format="ndjson")) as capture:
                await until_records(capture, 4)  # it connects again

    asyncio.run(run())
    assert set(greeted) == {"all"}
    assert lines_of(home)[:4] == ['{"id": "a", "t": 1}', '{"id": "b", "t": 1}'] * 2


def publish(broker, topic, messages):
    """Tells a broker messages, until it has confirmed each."""
    import paho.mqtt.client as mqtt
    from paho.mqtt.enums import CallbackAPIVersion

    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    client.username_pw_set("ship", "secret")
    client.connect("127.0.0.1", broker.port)
    client.loop_start()
    for told in [client.publish(topic, message, qos=1) for message in messages]:
        told.wait_for_publish(30)
    client.disconnect()
    client.loop_stop()


def test_mqtt_brings_what_was_told_while_nobody_captured_and_after_a_kill(
    home, tmp_path, monkeypatch
):
    monkeypatch.setenv("BROKER_TOKEN", "secret")

    def messages(start, stop):
        return [json.dumps({"id": "a", "t": number}) for number in range(start, stop)]

    async def run():
        with mqtt_broker(tmp_path, {"ship": "secret"}) as broker:
            source = {
                "kind": "mqtt",
                "connect": broker.address,
                "topics": ["ships/#"],
                "user": "ship",
                "token_env": "BROKER_TOKEN",
                "retry_max_s": 0.2,
            }
            stream = stream_with(source, format="ndjson")
            async with capturing(home, stream) as capture:
                await until(Log(home.log("ships")).folder.parent.exists)
                await asyncio.sleep(0.5)  # it has subscribed
                await asyncio.to_thread(publish, broker, "ships/a", messages(0, 50))
                await until_records(capture, 50)
            await asyncio.to_thread(publish, broker, "ships/b", messages(50, 600))
            async with killed(home, stream) as capture:
                await until_records(capture, 100)
            async with capturing(home, stream) as capture:
                await until(lambda: len(set(lines_of(home))) == 600)

    asyncio.run(run())
    assert [json.loads(line)["t"] for line in dict.fromkeys(lines_of(home))] == list(
        range(600)
    )


def test_messages_have_no_header(home):
    source = {"kind": "udp", "listen": ":1"}
    with pytest.raises(ConfigError, match="messages of udp have no header"):
        asyncio.run(_started(home, stream_with(source)))


def test_documents_do_not_come_line_by_line(home):
    columns = {"object": "trk/name", "event_ts": "time", "x": "lon", "y": "lat"}
    stream = stream_with(
        {"kind": "tcp", "listen": ":1"},
        format="gpx",
        columns=columns,
        time_unit="iso",
        crs="EPSG:4326",
    )
    with pytest.raises(ConfigError, match="gpx cannot come by tcp"):
        asyncio.run(_started(home, stream))
