"""Lines with a stamp in front of each, as loggers write them: JSON objects and SBS-1, found by check and replayed."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common.cli import app
from st_common.config.streams import stream_of_table
from st_common.decode import decode

pytestmark = pytest.mark.spec("B6", "B7")

START = 1_764_000_000
STAMPS = {
    "iso": lambda s: f"2025-11-24T16:00:{s:02}.250Z ",
    "iso with a blank": lambda s: f"2025-11-24 16:00:{s:02}.250+00:00\t",
    "brackets": lambda s: f"[2025-11-24 17:00:{s:02}.25 +01:00] ",
    "epoch": lambda s: f"{START + s}.25 ",
    "epoch and a colon": lambda s: f"{START + s}.25: ",
}
UNITS = {"epoch": "s", "epoch and a colon": "s"}
IDS = [pytest.param(name, id=name) for name in STAMPS]
SBS = "MSG,3,1,1,{hex},1,2025/11/24,17:00:0{s}.000,2025/11/24,17:00:0{s}.000,,36000,,,51.5,-0.1,,,0,0,0,0"


def stream(**table):
    return stream_of_table("s", table, Path("streams.toml"))


def found(text: str, settings) -> tuple[list[tuple], list[str]]:
    decoded = decode(text.encode(), settings, arrival_us=(START + 86_400) * 1_000_000)
    rows = decoded.fixes.to_pydict()
    fixes = list(
        zip(rows["object"], rows["event_ts"], rows["x"], rows["y"], strict=True)
    )
    return fixes, decoded.rejects["reason"].to_pylist()


@pytest.mark.parametrize("stamp", IDS)
def test_objects_behind_stamps_have_them_as_received(stamp: str):
    settings = stream(
        format="ndjson",
        columns={"object": "id", "event_ts": "received", "x": "lon", "y": "lat"},
        time_unit=UNITS.get(stamp, "iso"),
    )
    lines = [
        f'{STAMPS[stamp](s)}{{"id": "v{s}", "lon": {24 + s}, "lat": 60, "at": {{"b": 1}}}}\n'
        for s in range(3)
    ]
    fixes, rejects = found("".join(lines), settings)
    assert fixes == [
        (f"v{s}", (START + s) * 1_000_000 + 250_000, 24.0 + s, 60.0) for s in range(3)
    ]
    assert rejects == []


def test_lines_with_and_without_stamps_keep_their_order_and_rejects_their_bytes():
    settings = stream(
        format="ndjson", columns={"object": "id", "event_ts": "t", "x": "x", "y": "y"}, time_unit="s"
    )  # fmt: skip
    lines = [
        '{"id": "a", "t": 1764000000, "x": 1, "y": 1}',
        '2025-11-24T16:00:01Z {"id": "b", "t": 1764000001, "x": 1, "y": 1}',
        "2025-11-24T16:00:01Z started",
        '{"id": "c", "t": 1764000002, "x": 1, "y": 1}',
        '2025-11-24T16:00:01Z {"id": "d", "t": 1764000003, "x": 1, "y": }',
        "2025-11-24T16:00:01Z {}",
    ]
    decoded = decode(
        "\n".join(lines).encode(), settings, arrival_us=2 * START * 1_000_000
    )
    assert decoded.fixes["object"].to_pylist() == ["a", "b", "c"]
    assert decoded.fixes["row"].to_pylist() == [0, 1, 3]
    assert [(row["row"], row["raw"].decode(), row["reason"]) for row in decoded.rejects.to_pylist()] == [
        (2, lines[2], "no_json_object"), (4, lines[4], "bad_json"), (5, lines[5], "missing_object")
    ]  # fmt: skip


@pytest.mark.parametrize("stamp", IDS)
def test_lines_of_sbs_1_behind_stamps_are_read_by_either_time(stamp: str):
    columns = {
        "object": "hex",
        "event_ts": "received",
        "x": "longitude",
        "y": "latitude",
    }
    text = "".join(
        f"{STAMPS[stamp](s)}{SBS.format(hex='4CA', s=s)}\n" for s in range(3)
    )
    by_stamp = stream(format="sbs1", columns=columns, time_unit=UNITS.get(stamp, "iso"))
    fixes, rejects = found(text, by_stamp)
    assert [one[1] for one in fixes] == [
        (START + s) * 1_000_000 + 250_000 for s in range(3)
    ]
    assert rejects == []
    own = stream(
        format="sbs1",
        columns={**columns, "event_ts": "time"},
        time_zone="Europe/Berlin",
    )
    fixes, rejects = found(text, own)
    assert [one[1] for one in fixes] == [(START + s) * 1_000_000 for s in range(3)]


def test_stamped_lines_of_sbs_1_about_something_else_are_no_position():
    text = "".join(
        f"{START}.5 {line}\n"
        for line in (
            "STA,,5,179,400AE7,10103,2025/11/24,14:58:51.153,2025/11/24,14:58:51.153,RM",
            SBS.format(hex="4CA", s=1).replace("MSG,3", "MSG,4"),
            SBS.format(hex="4CA", s=1),
        )
    )
    settings = stream(
        format="sbs1",
        columns={
            "object": "hex",
            "event_ts": "time",
            "x": "longitude",
            "y": "latitude",
        },
        attributes={"altitude": "double ft"},
        time_zone="Europe/Berlin",
    )
    fixes, rejects = found(text, settings)
    assert (len(fixes), rejects) == (1, ["no_position", "no_position"])


def ndjson(stamp: str, *, own: bool) -> str:
    rows = []
    for n in range(20):
        record = {"id": f"v{n % 2}", "lon": 24 + n / 1000, "lat": 60.1}
        if own:
            record["time"] = START + n
        rows.append(f"{STAMPS[stamp](n)}{json.dumps(record)}\n")
    return "".join(rows)


@pytest.mark.parametrize("own", [True, False], ids=["own time", "stamp alone"])
@pytest.mark.parametrize("stamp", IDS)
def test_check_finds_stamped_objects_and_replay_takes_what_it_writes(
    tmp_path: Path, stamp: str, own: bool
):
    file = tmp_path / "log.txt"
    file.write_text(ndjson(stamp, own=own))
    run = CliRunner()
    (tmp_path / "home" / "conf").mkdir(parents=True)
    home = ["--home", str(tmp_path / "home")]
    checked = run.invoke(
        app, [*home, "check", str(file), "--write", "s"], prog_name="fairway"
    )
    assert checked.exit_code == 0, checked.output
    assert "20 of 20 records looked at are fixes" in checked.output
    assert f'event_ts = "{"time" if own else "received"}"' in checked.output
    replayed = run.invoke(app, [*home, "replay", "s", str(file)], prog_name="fairway")
    assert replayed.exit_code == 0, replayed.output
    assert "20 records" in replayed.output


@pytest.mark.parametrize("stamp", IDS)
def test_check_finds_stamped_sbs_1(tmp_path: Path, stamp: str):
    file = tmp_path / "log.txt"
    file.write_text(
        "".join(f"{STAMPS[stamp](s)}{SBS.format(hex='4CA', s=s)}\n" for s in range(5))
    )
    checked = CliRunner().invoke(app, ["check", str(file)], prog_name="fairway")
    assert checked.exit_code == 0, checked.output
    assert 'format = "sbs1"' in checked.output
    assert "5 of 5 records looked at are fixes" in checked.output
    assert 'also fits: event_ts = "received"' in checked.output
