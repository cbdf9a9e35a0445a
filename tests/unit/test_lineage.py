"""Lineage: real jobs tell a real endpoint, or a file, what they read and wrote; and no endpoint ever holds one up."""

import hashlib
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

from st_common.cli import app
from st_common.errors import ConfigError
from st_common.lineage.settings import lineage_settings
from tests.kit.http_receiver import Answer, HttpReceiver, http_receiver
from tests.kit.installation import PATIENCE_S, ROOT, Installation, wait

pytestmark = pytest.mark.spec("S10")

SECRET = "s3cret-of-lineage"
FACET = {
    "type": "object",
    "required": ["_producer", "_schemaURL"],
    "properties": {
        "_producer": {"type": "string", "format": "uri"},
        "_schemaURL": {"type": "string", "pattern": "^https://openlineage.io/spec/"},
    },
}
FACETS = {"type": "object", "additionalProperties": FACET}
DATASET = {
    "type": "object",
    "required": ["namespace", "name"],
    "additionalProperties": False,
    "properties": {
        "namespace": {"const": "file"},
        "name": {"type": "string", "pattern": "^/"},
        "facets": FACETS,
        "inputFacets": FACETS,
        "outputFacets": FACETS,
    },
}
EVENT = {  # what OpenLineage 2-0-2 demands of the event of a run, and nothing beside it
    "type": "object",
    "required": ["eventTime", "eventType", "producer", "schemaURL", "run", "job"],
    "additionalProperties": False,
    "properties": {
        "eventTime": {"type": "string", "format": "date-time"},
        "eventType": {"enum": ["START", "COMPLETE", "ABORT", "FAIL"]},
        "producer": {"type": "string", "format": "uri"},
        "schemaURL": {"type": "string", "pattern": "#/\\$defs/RunEvent$"},
        "run": {
            "type": "object",
            "required": ["runId"],
            "additionalProperties": False,
            "properties": {
                "runId": {"type": "string", "format": "uuid"},
                "facets": FACETS,
            },
        },
        "job": {
            "type": "object",
            "required": ["namespace", "name"],
            "additionalProperties": False,
            "properties": {
                "namespace": {"type": "string", "minLength": 1},
                "name": {"type": "string", "minLength": 1},
                "facets": FACETS,
            },
        },
        "inputs": {"type": "array", "items": DATASET},
        "outputs": {"type": "array", "items": DATASET},
    },
}
VALIDATOR = jsonschema.Draft202012Validator(
    EVENT, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
)
PARK = {
    "type": "Feature",
    "id": "p1",
    "properties": {"leisure": "park"},
    "geometry": {
        "type": "Polygon",
        "coordinates": [[[24, 60], [25, 60], [25, 61], [24, 61], [24, 60]]],
    },
}

Event = dict[str, Any]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Installation]:
    installation = Installation(tmp_path)
    yield installation
    installation.end()


def lineage(place: Installation, text: str) -> None:
    (place.conf / "operations.toml").write_text(f"[lineage]\n{text}\n")


def job(place: Installation, name: str, *words: str) -> int:
    """Runs a job in this process; gives its exit code."""
    module = importlib.import_module(f"jobs.{name}")
    local = ["--engine=local"] if name == "maintain" else []
    return int(module.main([*words, *local, "--home", str(place.home.root)]))


def in_process(
    place: Installation, name: str, *words: str, **variables: str
) -> subprocess.Popen[str]:
    """Starts a job in a process of its own."""
    command = [sys.executable, "-m", f"jobs.{name}", *words]
    return subprocess.Popen(
        [*command, "--home", str(place.home.root)],
        cwd=ROOT,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def in_file(place: Installation) -> list[Event]:
    files = sorted((place.home.root / "lineage").glob("*.jsonl"))
    lines = [line for file in files for line in file.read_text().splitlines()]
    return [valid(json.loads(line)) for line in lines]


def received(receiver: HttpReceiver) -> list[Event]:
    return [valid(event) for event in receiver.taken]


def valid(event: Event) -> Event:
    VALIDATOR.validate(event)
    return event


def told(events: list[Event]) -> list[tuple[str, str]]:
    return [(event["job"]["name"], event["eventType"]) for event in events]


def names(place: Installation, datasets: list[Event]) -> set[str]:
    home = str(place.home.root.resolve()) + "/"
    return {dataset["name"].removeprefix(home) for dataset in datasets}


def test_an_event_that_lacks_what_the_standard_demands_is_refused_by_the_test() -> None:
    for wrong in ({}, {"eventType": "START", "run": {"runId": "7"}}):
        assert not VALIDATOR.is_valid(wrong)


def test_a_layer_that_is_loaded_comes_from_its_file_with_the_columns_of_its_contract(
    place: Installation,
) -> None:
    file = place.home.root / "parks.geojson"
    file.write_text(json.dumps({"type": "FeatureCollection", "features": [PARK]}))
    with http_receiver() as receiver:
        lineage(
            place, f'to = "http"\nurl = "{receiver.url}"\ntoken_env = "OUR_LINEAGE"'
        )
        words = ("load_layer", "parks", str(file), "--engine=local")
        process = in_process(place, *words, OUR_LINEAGE=SECRET)
        out, err = process.communicate(timeout=PATIENCE_S)
        events = received(receiver)
    assert (process.returncode, err.count("lineage")) == (0, 0), err
    assert told(events) == [
        ("load_layer.parks", "START"),
        ("load_layer.parks", "COMPLETE"),
    ]
    assert len({event["run"]["runId"] for event in events}) == 1
    assert receiver.headers[0]["Authorization"] == f"Bearer {SECRET}"
    assert receiver.headers[0]["Content-Type"] == "application/json"
    assert names(place, events[1]["inputs"]) == {"parks.geojson"}
    (layer,) = events[1]["outputs"]
    assert layer["name"] == str(place.home.table("layers", "parks").resolve())
    facets = layer["facets"]
    assert facets["version"]["datasetVersion"] == "1"
    columns = {one["name"]: one["type"] for one in facets["schema"]["fields"]}
    assert columns["minx"] == "double"
    assert columns["tags"] == "map<string,string>"
    assert SECRET not in out + err + json.dumps(events)


def test_a_stream_tells_what_it_reads_before_it_ends_and_all_that_it_wrote_then(
    place: Installation,
) -> None:
    lineage(place, 'to = "file"\nnamespace = "ours"')
    place.arrives("a,2024-05-01T00:00:00Z,24.5,60.5", "a,2024-05-01T00:01:00Z,9,9")
    place.register("REGISTER QUERY q AS SELECT * FROM taxis INSIDE (0, 0, 30, 70)")
    assert job(place, "run_stream", "taxis", "--until-idle") == 0
    start, end = in_file(place)
    assert told([start, end]) == [
        ("run_stream.taxis", "START"),
        ("run_stream.taxis", "COMPLETE"),
    ]
    assert start["job"]["namespace"] == "ours"
    assert start["job"]["facets"]["jobType"]["processingType"] == "STREAMING"
    written = {"tables/changes/taxis", "tables/positions/taxis", "tables/rejects"}
    for event in (start, end):
        assert "streams/taxis/log" in names(place, event["inputs"])
        assert written <= names(place, event["outputs"])
    by_name = {Path(one["name"]).parent.name: one for one in end["outputs"]}
    assert int(by_name["changes"]["facets"]["version"]["datasetVersion"]) > 0


def test_a_job_that_fails_says_why_and_one_whose_settings_are_wrong_is_refused(
    place: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    lineage(place, 'to = "file"')
    assert job(place, "report_quality", "--day", "2024-05-01") == 2
    events = in_file(place)
    assert told(events) == [("report_quality", "START"), ("report_quality", "FAIL")]
    message = events[1]["run"]["facets"]["errorMessage"]["message"]
    assert message.startswith("2024-05-01 is not closed")
    lineage(place, 'to = "http"\nurl = "http://127.0.0.1:9/"\ntoken_env = "NOT_SET"')
    assert job(place, "maintain") == 2
    assert "NOT_SET is not set" in capsys.readouterr().err


def test_of_a_job_that_is_killed_the_next_run_tells_that_it_was_aborted(
    place: Installation,
) -> None:
    lineage(place, 'to = "file"')
    place.arrives("a,2024-05-01T00:00:00Z,24.5,60.5")
    process = in_process(place, "run_stream", "taxis")
    try:
        wait(lambda: len(in_file(place)) == 1, "the stream said that it starts")
        assert job(place, "maintain", "--levels") == 0
        of_stream = [e for e in told(in_file(place)) if e[0] == "run_stream.taxis"]
        assert of_stream == [("run_stream.taxis", "START")], "it lives"
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE_S)
    assert job(place, "maintain", "--levels") == 0
    events = [e for e in in_file(place) if e["job"]["name"] == "run_stream.taxis"]
    assert [event["eventType"] for event in events] == ["START", "ABORT"]
    assert events[0]["run"]["runId"] == events[1]["run"]["runId"]
    assert "killed" in events[1]["run"]["facets"]["errorMessage"]["message"]
    assert job(place, "maintain", "--levels") == 0
    assert told(in_file(place)).count(("run_stream.taxis", "ABORT")) == 1


@pytest.mark.parametrize("kind", ["refuses", "fails", "is silent", "is away"])
def test_an_endpoint_that_does_not_take_events_fails_no_job_and_is_named_once(
    place: Installation, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = {
        "refuses": Answer(status=404, body="no such path"),
        "fails": Answer(status=503),
        "is silent": Answer(pause_s=20.0),
    }
    with http_receiver(lambda _: answers.get(kind, Answer())) as receiver:
        lineage(place, f'to = "http"\nurl = "{receiver.url}"\ntimeout_s = 0.3')
        if kind == "is away":
            receiver.stop()
        assert job(place, "maintain") == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["tables"] == []
    assert said.err.count("lineage is not told") == 1


def test_a_day_that_was_checked_says_of_each_table_which_promises_hold(
    place: Installation,
) -> None:
    lineage(place, 'to = "file"')
    place.arrives("a,2024-05-01T00:00:00Z,24.5,60.5", "a,2024-05-02T00:01:00Z,9,9")
    assert job(place, "run_stream", "taxis", "--until-idle") == 0
    words = ("--day", "2024-05-01", "--engine", "local")
    process = in_process(place, "report_quality", *words)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    end = in_file(place)[-1]
    assert told([end]) == [("report_quality", "COMPLETE")]
    assert "tables/quality" in names(place, end["outputs"])
    (positions,) = [
        one for one in end["inputs"] if one["name"].endswith("positions/taxis")
    ]
    said = positions["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert {"assertion", "success", "severity"} <= set(said[0])
    assert all(one["success"] for one in said if one["severity"] == "error")


def uuid_of(instant: datetime, name: str) -> str:
    """As RFC 9562 has version 7, with a hash in the place of what is random there."""
    text = instant.astimezone(UTC).isoformat().encode() + name.encode()
    tail = int(hashlib.sha1(text).hexdigest(), 16) >> 84
    number = (int(instant.timestamp() * 1000) << 80) | tail
    digits = f"{number:032x}"
    variant = f"{int(digits[16], 16) & 3 | 8:x}"
    return (
        f"{digits[:8]}-{digits[8:12]}-7{digits[13:16]}-"
        f"{variant}{digits[17:20]}-{digits[20:]}"
    )


def test_a_job_of_airflow_hangs_below_its_task_and_the_run_of_its_dag(
    place: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    lineage(place, 'to = "file"')
    due = datetime(2024, 5, 1, 2, 30, tzinfo=UTC)
    task = {
        "namespace": "default",
        "dag": "maintenance",
        "task": "maintain",
        "instant": due.isoformat(),
        "try_number": 2,
        "map_index": -1,
        "clear_number": 1,
    }
    monkeypatch.setenv("FAIRWAY_LINEAGE_PARENT", json.dumps(task))
    assert job(place, "maintain") == 0
    events = in_file(place)
    assert len(events) == 2
    for event in events:
        parent = event["run"]["facets"]["parent"]
        assert parent["job"] == {
            "namespace": "default",
            "name": "maintenance.maintain",
            "facets": {},
        }
        own = uuid_of(due, "default.maintenance.maintain.2.-1")
        assert parent["run"]["runId"] == own
        root = uuid_of(due, "default.maintenance.1")
        assert parent["root"]["run"]["runId"] == root
        assert parent["root"]["job"]["name"] == "maintenance"


def test_a_command_is_told_as_the_job_that_does_the_same(place: Installation) -> None:
    lineage(place, 'to = "file"')
    home = ["--home", str(place.home.root)]
    done = CliRunner().invoke(app, [*home, "quality", "report", "--day", "2024-05-01"])
    assert done.exit_code == 2, done.output
    assert CliRunner().invoke(app, [*home, "maintain"]).exit_code == 0
    assert told(in_file(place)) == [
        ("report_quality", "START"),
        ("report_quality", "FAIL"),
        ("maintain", "START"),
        ("maintain", "COMPLETE"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "lineage: to is missing"),
        ('to = "kafka"', "to = 'kafka' is none of file, http"),
        ('to = "http"', "url is missing"),
        ('to = "file"\nurl = "https://x.example"', "url is for an endpoint"),
        (
            'to = "http"\nurl = "https://x.example"\nkeep_days = 5',
            "keep_days is for files",
        ),
        (
            'to = "http"\nurl = "http://x.example"\ntoken_env = "A"',
            "would be sent without TLS",
        ),
        ('to = "file"\nkeep_day = 5', "unknown key 'keep_day'"),
    ],
)
def test_a_wrong_setting_is_named_with_file_and_key(
    place: Installation, text: str, message: str
) -> None:
    lineage(place, text)
    with pytest.raises(ConfigError) as error:
        lineage_settings(place.conf)
    assert message in str(error.value)
    assert "operations.toml" in str(error.value)


def test_without_the_package_a_stream_a_job_and_doctor_say_what_to_install(
    place: Installation,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lineage(place, 'to = "file"')
    monkeypatch.setitem(sys.modules, "openlineage.client", None)
    assert job(place, "maintain") == 2
    assert _MISSING in capsys.readouterr().err
    words = ("--home", str(place.home.root), "--conf", str(place.conf))
    for command in (("run", "taxis", "--until-idle"), ("doctor",)):
        done = CliRunner().invoke(app, [*words, *command])
        assert (done.exit_code, _MISSING in " ".join(done.output.split())) == (2, True)
    (place.conf / "operations.toml").unlink()
    assert job(place, "maintain") == 0


_MISSING = (
    "operations.toml:1: lineage: the package openlineage-python is not installed "
    "(pip install 'fairway-streams[lineage]'"
)


@pytest.mark.spec("S4")
def test_files_of_lineage_go_when_they_are_older_than_the_settings_say(
    place: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    lineage(place, 'to = "file"\nkeep_days = 3')
    today = datetime.fromtimestamp(time.time_ns() // 10**9, UTC).date()
    for age in range(6):
        file = place.home.root / "lineage" / f"{today - timedelta(days=age)}.jsonl"
        file.parent.mkdir(exist_ok=True)
        file.touch()
    assert job(place, "maintain") == 0
    assert json.loads(capsys.readouterr().out)["cleared"]["lineage_files"] >= 2
    kept = [file.stem for file in (place.home.root / "lineage").glob("*.jsonl")]
    assert min(kept) >= (today - timedelta(days=3)).isoformat()


def test_without_settings_nothing_is_told(place: Installation) -> None:
    assert job(place, "maintain") == 0
    assert not (place.home.root / "lineage").exists()
