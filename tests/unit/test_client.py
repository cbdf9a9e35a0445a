"""The Python client: a registered plan gives its changes as they come, until it is cancelled."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from st_common.answers.changes import stream_changes
from st_common.client import Element, Feature, HomeClient, MultiTuple, Registration
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.run import run
from st_common.errors import QueryError
from st_common.geometry.space import PLANE
from st_common.layers.load import load
from st_common.operations.stop import place_marker
from st_common.query.builder import query
from st_common.query.builder.answering import StreamKind
from st_common.query.lookup import find, history, queries
from st_common.query.text import to_text
from tests.kit.log_writer import bare_log

CARS = StreamSettings(
    name="cars",
    format="csv",
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
    crs="planar",
    time_unit="s",
    max_ahead_s=None,
    attributes={"line": "string"},
)
SQUARE = query("cars").in_space((0, 0, 10, 10))
LONG_S = 20.0
CONF = Path(__file__).resolve().parents[2] / "conf"
PARKS = """{"type": "FeatureCollection", "features": [{"type": "Feature", "id": "p1",
    "properties": {"leisure": "park", "name": "Elm"},
    "geometry": {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]}}]}"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
def client(home: Home) -> HomeClient:
    return HomeClient(home, streams={"cars": CARS}, owner="me", poll_s=0.01)


def fixes(home: Home, *lines: str) -> None:
    bare_log(home.log("cars")).append(
        "\n".join(("id,t,x,y,line", *lines, "")).encode(), arrival_us=0
    )


@contextmanager
def running(home: Home, stream: StreamSettings = CARS) -> Iterator[None]:
    """The local engine follows the log in a thread of its own, as `fairway run` does in a process."""
    thread = threading.Thread(
        target=run, args=(home, stream), kwargs={"until_idle": False}
    )
    thread.start()
    try:
        yield
    finally:
        place_marker(home.stream(stream.name), now_us=0)
        thread.join(LONG_S)
        assert not thread.is_alive()


def soon(changes: Registration) -> MultiTuple:
    found = changes.next(LONG_S)
    assert found is not None
    return found


def told(change: MultiTuple) -> tuple[object, ...]:
    return change.element.object, change.sign, change.cause


@pytest.mark.spec("B14")
def test_an_iterator_blocks_until_the_next_change(home: Home, client: HomeClient):
    changes = client.register(SQUARE.select("line", "x"), "square")
    assert changes.id == ("square", 1)
    with running(home):
        late = threading.Timer(0.5, fixes, (home, "a,1,5,5,12", "b,1,50,5,12"))
        started_s = time.monotonic()
        late.start()
        first = next(changes)
        assert time.monotonic() - started_s > 0.4
        fixes(home, "a,2,60,5,12")
        second = soon(changes)
    assert [told(first), told(second)] == [("a", 1, "enter"), ("a", -1, "leave")]
    (element,) = first
    assert element == Element(
        object="a",
        event_ts=datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
        x=5.0,
        y=5.0,
        fields={"line": "12", "x": 5.0},
    )
    assert (first.query_version, first.layer_version, first.value) == (1, None, None)
    assert [(each.position, each.seq) for each in (first, second)] == [
        (row["position"], row["seq"])
        for row in stream_changes(home, "cars", "square").to_pylist()
    ]


@pytest.mark.spec("B14")
def test_text_builder_and_plan_register_equal_plans(home: Home, client: HomeClient):
    plan = SQUARE.where("line = '12'").build()
    text = to_text(plan, "by_text")
    select = text.partition(" AS ")[2]
    for number, what in enumerate(
        (plan, SQUARE.where("line = '12'"), select, f"-- why\n/* how */ {select};")
    ):
        assert client.register(what, f"q{number}").id == (f"q{number}", 1)
    assert client.register(text).id == ("by_text", 1)
    assert {row.plan for row in queries(home)} == {plan}
    assert {row.owner for row in queries(home)} == {"me"}


@pytest.mark.spec("B14")
def test_a_query_without_a_name_gets_one_of_its_own(client: HomeClient):
    first, second = (client.register(SQUARE) for _ in range(2))
    assert first.id.name != second.id.name


@pytest.mark.spec("B14", "W6")
def test_a_created_stream_is_known_to_this_client_and_to_others(
    home: Home, client: HomeClient
):
    other = HomeClient(home, streams={"cars": CARS}, owner="you")
    feeds = client.register(
        "CREATE STREAM near AS SELECT line FROM cars INSIDE (0, 0, 10, 10)"
    )
    assert feeds.id == ("near", 1)
    for one in (client, other):
        asks = one.register("SELECT * FROM near WHERE line = 'bus'")
        assert find(home, asks.id.name).stream == "near"


@pytest.mark.spec("B14")
def test_cancel_drops_the_query_and_ends_its_iterators(home: Home, client: HomeClient):
    changes = client.register(SQUARE, "square")
    found: list[MultiTuple] = []
    reader = threading.Thread(target=lambda: found.extend(changes))
    with running(home):
        fixes(home, "a,1,5,5,12")
        reader.start()
        deadline_s = time.monotonic() + LONG_S
        while not found and time.monotonic() < deadline_s:
            time.sleep(0.01)
        client.cancel(changes.id)
        reader.join(LONG_S)
        assert not reader.is_alive()
    assert changes.closed
    assert told(found[0]) == ("a", 1, "enter")
    assert not find(home, "square").live
    with pytest.raises(QueryError, match="dropped already"):
        client.cancel(changes.id)


@pytest.mark.spec("B14")
@pytest.mark.parametrize("how", ["drop", "replace"])
def test_what_others_drop_or_replace_ends_after_its_last_change(
    home: Home, client: HomeClient, how: str
):
    changes = client.register(SQUARE, "square")
    with running(home):
        fixes(home, "a,1,5,5,12")
        first = soon(changes)
        other = HomeClient(home, streams={"cars": CARS}, owner="another")
        if how == "drop":
            other.cancel(changes.id)
        else:
            newer = other.register(
                "REPLACE QUERY square AS SELECT * FROM cars INSIDE (0, 0, 20, 20)"
            )
            assert newer.id == ("square", 2)
            with pytest.raises(QueryError, match="was replaced"):
                client.cancel(changes)
        rest = list(changes)
    assert [told(each)[1] for each in (first, *rest)] == [1, -1]
    assert {each.query_version for each in (first, *rest)} == {1}
    assert changes.closed


@pytest.mark.spec("B14")
def test_a_join_gives_the_element_then_its_partner(
    home: Home, client: HomeClient, tmp_path: Path
):
    home.stream("cars").mkdir(parents=True)
    file = tmp_path / "parks.geojson"
    file.write_text(PARKS)
    load(home, "parks", file, group="default", conf=CONF, space=PLANE)
    plain = client.register(query("cars").join("parks").on_intersects(), "plain")
    tagged = client.register(
        query("cars").join("parks").on_intersects(), "tagged", tags=True
    )
    pairs = client.register(query("cars").join("cars").on_dwithin(3), "pairs")
    with running(home):
        fixes(home, "a,1,2,2,12", "b,2,60,60,12", "b,3,4,3,12", "b,9,70,60,12")
        found = [soon(changes) for changes in (plain, tagged)]
        element, other = soon(pairs)
    assert [each[1] for each in found] == [
        Feature(fid="p1", layer="parks"),
        Feature(
            fid="p1",
            layer="parks",
            kind="park",
            tags={"leisure": "park", "name": "Elm"},
        ),
    ]
    assert [each[0].object for each in found] == ["a", "a"]
    assert len(found[0]) == 2
    assert isinstance(other, Element)
    assert {element.object, other.object} == {"a", "b"}


@pytest.mark.spec("B14", "W6")
@pytest.mark.parametrize(("kind", "signs"), [("istream", [1, 1]), ("dstream", [-1])])
def test_of_a_stream_query_only_its_elements_come(
    home: Home, client: HomeClient, kind: StreamKind, signs: list[int]
):
    changes = client.register(SQUARE.as_stream(kind))
    with running(home):
        fixes(home, "a,1,5,5,12", "a,2,50,5,12", "a,3,6,5,12")
        found = [soon(changes) for _ in signs]
        assert changes.next(0.1) is None
    assert [change.sign for change in found] == signs
    assert {(element.object, element.x is not None) for (element,) in found} == {
        ("a", True)
    } or kind == "dstream"


@pytest.mark.spec("B14")
def test_real_ships_come_as_the_table_has_them(home: Home, shared: Path):
    ships = StreamSettings(
        name="ships",
        format="csv",
        time_unit="%d/%m/%Y %H:%M:%S",
        max_ahead_s=None,
        attributes={"SOG": "double"},
        columns=Columns(
            object="MMSI", event_ts="# Timestamp", x="Longitude", y="Latitude"
        ),
    )
    client = HomeClient(home, streams={"ships": ships}, poll_s=0.01)
    changes = client.register(
        query("ships")
        .in_space((10, 55, 13, 57))
        .where("SOG > 5")
        .select("SOG", "x")
        .emit_every(),
        "sound",
    )
    log = bare_log(home.log("ships"))
    log.append(
        (
            shared / "data" / "ais-denmark" / "aisdk-2026-04-26-first20000.csv"
        ).read_bytes(),
        arrival_us=0,
    )
    with running(home, ships):
        table = [soon(changes) for _ in range(100)]
        client.register(
            "REPLACE QUERY sound AS SELECT * FROM ships INSIDE (0, 0, 1, 1)"
        )
        table += list(changes)
    stored = [
        row
        for row in stream_changes(home, "ships", "sound").to_pylist()
        if row["query_version"] == 1
    ]
    assert len(stored) > 500
    assert [
        (each.element.object, each.element.event_ts, each.sign, each.position)
        for each in table
    ] == [
        (row["object"], row["fix_ts"] or row["event_ts"], row["sign"], row["position"])
        for row in stored
    ]
    assert all(
        10 <= each.element.x <= 13 and each.element.fields["SOG"] > 5
        for each in table
        if each.sign > 0
    )


def test_a_timeout_gives_nothing_and_a_closed_one_ends(home: Home, client: HomeClient):
    changes = client.register(SQUARE)
    assert changes.next(timeout_s=0.05) is None
    assert list(changes.within(0.05)) == []
    assert not changes.closed
    threading.Timer(0.1, changes.close).start()
    assert list(changes) == []
    with client.register(SQUARE) as open_one:
        assert not open_one.closed
    assert open_one.closed
    assert find(home, open_one.id.name).live


@pytest.mark.spec("B14", "P4")
@pytest.mark.parametrize(
    ("what", "name", "says"),
    [
        (query("trains"), None, "unknown stream 'trains'"),
        (query("cars").where("sped > 1"), None, "unknown column 'sped'"),
        (
            "REGISTER QUERY a AS SELECT * FROM cars; DROP QUERY a",
            None,
            "expected one statement",
        ),
        (
            "SELECT * FROM cars WHERE line >",
            None,
            "line 1, column 32: expected an expression",
        ),
        ("DROP QUERY taken", None, "expected one statement"),
        ("REGISTER QUERY a AS SELECT * FROM cars", "b", "calls the query 'a', not 'b'"),
        (SQUARE, "taken", "registered already"),
    ],
)
def test_what_is_wrong_registers_nothing(
    home: Home, client: HomeClient, what: object, name: str | None, says: str
):
    client.register(SQUARE, "taken")
    before = history(home)
    with pytest.raises(QueryError, match=says):
        client.register(what, name)
    assert history(home) == before
