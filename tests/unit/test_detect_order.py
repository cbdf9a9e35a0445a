"""check says what the order of event times means: what a replay sorts, what a feed would need, and what leaps ahead."""

import pyarrow as pa
import pytest

from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.detect.order import notes_of_order
from st_common.detect.report import detect

HEAD = "id,t,lon,lat\n"
START = 1_700_000_000

pytestmark = pytest.mark.spec("X14")


def notes(tmp_path, *told):
    path = tmp_path / "file.csv"
    path.write_text(
        HEAD + "".join(f"{name},{START + at},24.9,60.1\n" for name, at in told)
    )
    return list(detect(str(path)).order)


def test_a_file_by_vehicle_is_said_to_be_sorted_by_a_replay(tmp_path):
    told = [(bus, at) for bus in ("a", "b", "c") for at in range(0, 100, 10)]
    assert notes(tmp_path, *told) == [
        "18 of 30 fixes stand behind newer ones: fairway replay sorts the file; a feed of them needs lateness_s = 90"
    ]


def test_a_file_in_order_needs_no_note(tmp_path):
    assert notes(tmp_path, *(("a" if n % 2 else "b", n) for n in range(20))) == []


def test_a_leap_is_named_that_a_replay_rejects(tmp_path):
    told = [("a" if n % 2 else "b", n) for n in range(20)]
    told.append(("b", 365 * 86_400))
    (note,) = notes(tmp_path, *told)
    assert note == (
        "1 leap more than max_jump_s = 86400 ahead of all others, as 'b' does to 2024-11-13T22:13:20Z: "
        "a replay rejects them, ahead_of_stream"
    )


@pytest.mark.parametrize(
    ("settings", "late"),
    [
        ({}, 1),
        ({"silence_s": 50.0}, 3),
        ({"lateness_s": 30.0}, 3),
        ({"lateness_s": 99.0}, 0),
    ],
)
def test_of_a_feed_as_many_are_late_as_an_engine_would_say(settings, late):
    columns = Columns(object="id", event_ts="t", x="x", y="y")
    stream = StreamSettings(name="s", format="csv", columns=columns, **settings)
    told = [("a", 0), ("b", 90), ("c", 20), ("b", 100), ("a", 10), ("b", 40)]
    fixes = pa.table(
        {
            "object": pa.array([name for name, _ in told]).dictionary_encode(),
            "event_ts": pa.array([(START + at) * 1_000_000 for _, at in told]),
        }
    )
    said = notes_of_order(fixes, stream, is_file=False)
    assert [note.split(" ")[0] for note in said] == ([str(late)] if late else [])
