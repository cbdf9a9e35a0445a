"""Rectangles in control rows are read as columns, and written quickly: both say what reading and writing each says."""

import json
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from st_common.config.home import Home
from st_common.controls.rectangles import rectangles_of
from st_common.history.latest import Focals
from st_common.log.log import Log
from st_common.position import position_of
from st_common.query.control import QueryRow, encoded
from st_common.query.derived import _of_segment
from st_common.query.known import forget, known
from st_common.query.plain import plan_text
from st_common.query.plan import Aggregate, Plan
from st_common.regions.registry import Box, Circle, MovingBox

numbers = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    [0.0, -0.0, 1e22, 5e-324, 0.1]
)
boxes = st.builds(Box, minx=numbers, miny=numbers, maxx=numbers, maxy=numbers)
texts = st.text(max_size=12) | st.sampled_from(
    ['"plan":{', "}\n{", "a\\b", "\u2028", "grid"]
)
plans = st.builds(
    Plan,
    stream=texts,
    inside=boxes | st.none() | st.just(Circle(x=1.0, y=2.0, radius_m=3.0)),
    where=st.none() | texts,
    valid_until=st.booleans(),
    aggregate=st.none() | st.just(Aggregate(function="count")),
    emit=st.sampled_from(["changes", "istream"]),
)


@pytest.mark.spec("S4")
@given(plans)
def test_a_plan_is_written_as_json_writes_it(plan):
    assert plan_text(plan) == json.dumps(plan.to_json(), separators=(",", ":"))
    assert Plan.from_json(json.loads(plan_text(plan))) == plan


def lines_of(count, seed):
    rng = random.Random(seed)
    for n in range(count):
        box = Box(
            minx=rng.random() * n, miny=-n / 3, maxx=rng.random() * 1e9, maxy=float(n)
        )
        name = rng.choice([f"q{n}", f'a }}{{ " \\ {n}', f"é\U0001f600{n}"])
        yield encoded(
            QueryRow(
                name=name,
                version=1 + n % 3,
                op="register",
                stream="grid",
                position=-1,
                arrival_us=5,
                owner="me",
                plan=Plan(stream="grid", inside=box),
                text=f"REGISTER QUERY {name!r}",
            )
        )


OTHERS = (
    b"",
    b" ",
    b"{}",
    b"[1]",
    b'{"op":"clock","ts":5}',
    b'{"op":"drop","query":"q1"}',
    b'{"op":"end"} {"op":"end"}',
    b'{"op":"register","query":"w","version":1,"plan":{"v":3,"stream":"grid"},"text":"","owner":""}',
    b'{"op":"register","query":"w","version":1,"plan":{"v":3,"stream":"grid","where":"x > 1","inside":{"kind":"box",'
    b'"minx":1,"miny":1,"maxx":2,"maxy":2}},"text":"","owner":""}',
    b'{"op":"register","query":"w","version":1,"plan":{"v":2,"stream":"grid","inside":{"minx":1,"miny":1,"maxx":2,'
    b'"maxy":2}},"text":"","owner":""}',
    b'{"op":"replace","query":"w","version":1,"plan":{"v":3,"stream":"grid","inside":{"kind":"box","minx":1,"miny":1,'
    b'"maxx":2,"maxy":2}},"text":"","owner":""}',
    b'{"op":"register","query":"w","version":1,"plan":{"v":3,"stream":"grid","inside":{"kind":"circle","x":1,"y":1,'
    b'"radius_m":2}},"text":"","owner":""}',
    b'{"op":"register","query":"w","version":1,"plan":{"v":3,"stream":"grid","inside":{"kind":"box","minx":NaN,'
    b'"miny":1,"maxx":2,"maxy":2}},"text":"","owner":null}',
)


def test_rectangles_alone_are_read_as_columns():
    payload = b"".join(lines_of(200, 1))
    plain = rectangles_of(payload)
    rows = [json.loads(line) for line in payload.splitlines()]
    assert plain is not None
    assert plain.names == [row["query"] for row in rows]
    assert plain.versions == [row["version"] for row in rows]
    assert plain.texts.to_pylist() == [row["text"] for row in rows]
    assert list(plain.plan_texts()) == [json.dumps(row["plan"]) for row in rows]


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("at", [0, 77, 150])
def test_a_segment_with_any_other_row_is_read_row_by_row(other, at):
    lines = list(lines_of(150, 2))
    assert rectangles_of(b"".join([*lines[:at], other + b"\n", *lines[at:]])) is None


@given(st.integers(0, 1 << 32))
@example(19113)  # a byte in a text that is no UTF-8
def test_bytes_that_are_damaged_are_read_as_columns_only_where_rows_say_the_same(seed):
    rng = random.Random(seed)
    payload = bytearray(b"".join(lines_of(70, 3)))
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(payload))
        payload[at : at + rng.randint(0, 2)] = rng.choice(
            [b'"', b"}", b"{", b"\n", b",", b"1", b"e", b"-", b"\xff", b"a"]
        )
    plain = rectangles_of(bytes(payload))
    if plain is not None:
        rows = [json.loads(line) for line in bytes(payload).splitlines()]
        assert [row["op"] for row in rows] == ["register"] * len(plain)
        assert plain.names == [row["query"] for row in rows]
        assert plain.versions == [row["version"] for row in rows]
        read = [Plan.from_json(json.loads(text)) for text in plain.plan_texts()]
        assert read == [Plan.from_json(row["plan"]) for row in rows]


def test_the_table_and_the_names_are_those_of_reading_row_by_row(tmp_path, monkeypatch):
    home = Home(tmp_path)
    log = Log(home.log("grid"))
    log.append(b"".join(lines_of(300, 4)), arrival_us=9, control=True)
    (segment,) = log.control_segments(0)
    told = []
    for least in (1, 1 << 30):
        monkeypatch.setattr("st_common.controls.rectangles._LEAST_ROWS", least)
        versions = {}
        forget()
        table = _of_segment(log, segment, "grid", versions)
        told.append((table.to_pylist(), versions, known(home, ["grid"]).streams))
    assert told[0] == told[1]
    assert len(told[0][0]) == 300


actions = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.sampled_from(["still", "moving", "drop", "fail", "old"]),
    ),
    max_size=8,
)


@pytest.mark.spec("S4")
@given(st.lists(actions, min_size=1, max_size=8))
def test_the_queries_that_go_with_an_object_are_those_of_reading_every_row(
    tmp_path_factory, segments
):
    home = Home(tmp_path_factory.mktemp("home"))
    log, focals, versions, live = (
        Log(home.log("grid")),
        Focals("grid"),
        dict.fromkeys("abc", 0),
        {},
    )
    for segment in segments:
        lines = []
        for name, action in segment:
            if action in ("drop", "fail") and not versions[name]:
                continue
            row = {"op": action, "query": name}
            if action == "drop":
                live.pop(name, None)
            elif action in ("fail", "old"):
                row |= {
                    "op": "fail",
                    "version": versions[name] - (action == "old"),
                    "why": "it cannot be judged",
                }
                if action == "fail":
                    live.pop(name, None)
            else:
                versions[name] += 1
                box = Box(minx=0.0, miny=0.0, maxx=1.0, maxy=1.0)
                inside = (
                    box
                    if action == "still"
                    else MovingBox(focal=f"car {name}", width=1.0, height=1.0)
                )
                plan = Plan(stream="grid", inside=inside).to_json()
                row |= {
                    "op": "replace",
                    "version": versions[name],
                    "plan": plan,
                    "text": "",
                    "owner": "",
                }
                live.pop(name, None)
                if action == "moving":
                    live[name] = {
                        "object": f"car {name}",
                        "query": name,
                        "query_version": versions[name],
                    }
            lines.append(json.dumps(row).encode() + b"\n")
        log.append(
            b"".join(lines) or b'{"op": "clock", "ts": 1}\n', arrival_us=9, control=True
        )
        found = focals.at(home, position_of(log.end(), 0)).to_pylist()
        assert sorted(found, key=str) == sorted(live.values(), key=str)
