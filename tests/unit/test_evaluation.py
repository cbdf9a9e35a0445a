"""`fairway try` and `fairway.evaluate`: a query on a file or a frame, from nothing to answers."""

import doctest
import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
import shapely
from typer.testing import CliRunner

import fairway
from st_common.cli import app

ROOT = Path(__file__).resolve().parents[2]
BEGIN = 1_700_000_000  # 2023-11-14T22:13:20Z


def csv_of(*rows: str) -> str:
    """Records whose last field is seconds since the beginning."""
    lines = ["id,lon,lat,t"]
    for row in rows:
        fields, _, second = row.rpartition(",")
        lines.append(f"{fields},{BEGIN + int(second) if second else ''}")
    return "\n".join(lines) + "\n"


ROWS = ("a,1,1,1", "b,9,9,1", "a,8,8,2", "b,2,3,3")
CSV = csv_of(*ROWS)
BOX = "SELECT * FROM data INSIDE (0, 0, 5, 5)"
TOLD = [("a", 1, 1), ("a", -1, 2), ("b", 1, 3)]
"""What that query gives on these records: object, sign, second."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "Fixes 2025.csv"
    path.write_text(CSV)
    return path


@pytest.fixture
def temporary(tmp_path, monkeypatch) -> Path:
    """Where what is temporary lies, and no home nor settings of anybody."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    for name in ("FAIRWAY_HOME", "FAIRWAY_CONF"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return folder


def told(seen: fairway.Evaluation) -> list[tuple[str, int, int]]:
    epoch = datetime.fromtimestamp(BEGIN, UTC)
    return [
        (one["object"], one["sign"], round((one["event_ts"] - epoch).total_seconds()))
        for one in seen.changes
    ]


def tried(*words: str, code: int = 0, given: str | None = None):
    done = CliRunner().invoke(app, ["try", *words], input=given)
    assert done.exit_code == code, done.output
    return done


@pytest.mark.spec("S12")
def test_a_file_and_a_query_are_enough_for_changes(file, temporary):
    done = tried(str(file), BOX, "--json")
    changes = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(one["object"], one["sign"]) for one in changes] == [
        (name, sign) for name, sign, _ in TOLD
    ]
    assert changes[0]["event_ts"] == "2023-11-14T22:13:21Z"
    assert "read as csv: x = lon, y = lat, event_ts = t, object = id" in done.stderr
    assert list(temporary.iterdir()) == []


@pytest.mark.spec("S12")
def test_changes_are_shown_as_the_command_changes_shows_them(file, temporary):
    home = str(file.parent / "home")
    for words in (
        ["check", str(file), "--write", "data"],
        ["query", "register", "--text", f"REGISTER QUERY try AS {BOX}"],
        ["replay", "data", str(file)],
        ["run", "data", "--engine", "local", "--until-idle"],
    ):
        assert CliRunner().invoke(app, ["--home", home, *words]).exit_code == 0
    shown = CliRunner().invoke(app, ["--home", home, "changes"])
    assert tried(str(file), BOX).stdout == shown.stdout


def test_the_answer_is_shown_at_the_end_or_at_a_time(file, temporary):
    end = tried(str(file), BOX, "--answer").stdout.splitlines()
    assert [line.split()[0] for line in end] == ["object", "b"]
    then = tried(str(file), BOX, "--at", "2023-11-14T22:13:21.5Z").stdout
    assert [line.split()[0] for line in then.splitlines()] == ["object", "a"]
    assert "'noon' is no time" in tried(str(file), BOX, "--at", "noon", code=2).stderr


@pytest.mark.parametrize("name", ["data", "file", "FILE", "fixes_2025", "Fixes_2025"])
def test_from_says_data_or_file_or_the_name_of_the_file(file, temporary, name):
    with fairway.evaluate(file, BOX.replace("data", name)) as seen:
        assert told(seen) == TOLD


def test_from_another_name_is_an_error_that_says_which_there_are(file, temporary):
    done = tried(str(file), BOX.replace("data", "boats"), code=2)
    assert "'boats'" in done.stderr
    assert "fixes_2025 or data or file" in done.stderr
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELEC * FROM data", "did you mean SELECT"),
        ("", "expected one query, not 0 statements"),
        (f"{BOX}; {BOX}", "expected one query, not 2 statements"),
        ("SHOW QUERIES", "expected a query, not 'SHOW QUERIES'"),
        ("SELECT * FROM data AS OF '2025-01-01'", "ask a stream that has run"),
        ("SELECT * FROM data WHERE speed > 1", "speed"),
    ],
)
def test_what_is_wrong_with_a_query_is_said_and_nothing_stays(
    file, temporary, query, why
):
    assert why in tried(str(file), query, code=2).stderr
    assert list(temporary.iterdir()) == []


def test_what_is_left_out_is_told_with_its_reasons(tmp_path, temporary):
    path = tmp_path / "fixes.csv"
    path.write_text(csv_of(*ROWS, "c,1,,3", "d,,1,3", "c,1,1,", "b,8,8,3"))
    with fairway.evaluate(path, BOX) as seen:
        assert told(seen) == TOLD
    assert seen.notes == (
        "3 of 8 records are no fixes: 2 missing_position, 1 missing_time",
        "1 of 5 fixes has the time of an earlier one of its object, and changes nothing",
    )
    assert (seen.summary.rejects, seen.summary.fixes) == (3, 5)


def test_a_file_of_which_hardly_anything_can_be_read_is_refused(tmp_path, temporary):
    path = tmp_path / "fixes.csv"
    path.write_text(csv_of("a,1,1,1", *["a,1,x,1"] * 9))
    done = tried(str(path), BOX, code=2)
    assert done.stderr.startswith("error: ")
    assert list(temporary.iterdir()) == []


def test_records_without_times_are_refused(tmp_path, temporary):
    path = tmp_path / "places.csv"
    path.write_text("id,lon,lat\na,1,1\nb,2,2\n")
    assert "--time" in tried(str(path), BOX, code=2).stderr


@pytest.mark.spec("S12")
def test_columns_can_be_named_and_settings_given(tmp_path, temporary):
    path = tmp_path / "odd.csv"
    path.write_text(CSV.replace("id,lon,lat,t", "lorry,east,north,seen"))
    named = ["--object", "lorry", "--x", "east", "--y", "north", "--time", "seen"]
    rows = tried(str(path), BOX, *named, "--json").stdout.splitlines()
    assert len(rows) == len(TOLD)
    settings = ["--set", "silence_s=1", "--set", "columns.x=east"]
    rows = tried(str(path), BOX, *named, *settings, "--json").stdout.splitlines()
    assert "expired" in {json.loads(row)["cause"] for row in rows} or len(rows) > 2
    for words, why in (
        (["--set", "lateness_s"], "is no pair"),
        (["--set", "lateness_s=often"], "lateness_s"),
        (["--set", "late_s=1"], "late_s"),
        (["--set", "engine=spark"], "engine local"),
    ):
        assert why in tried(str(path), BOX, *named, *words, code=2).stderr


def test_other_columns_are_attributes_that_a_query_can_use(tmp_path, temporary):
    path = tmp_path / "cars.csv"
    path.write_text("id,lon,lat,speed,t\n" + csv_of("a,1,1,30,1", "b,1,1,50,1")[13:])
    with fairway.evaluate(path, "SELECT * FROM cars WHERE speed > 40") as seen:
        assert {one["object"] for one in seen.changes} == {"b"}


def test_a_layer_can_be_given_beside_the_records(file, temporary, tmp_path):
    area = shapely.geometry.mapping(shapely.box(0, 0, 5, 5))
    zones = tmp_path / "zones.geojson"
    feature = {"type": "Feature", "id": "depot", "geometry": area, "properties": {}}
    zones.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    text = "SELECT * FROM data JOIN LAYER zones ON ST_Intersects(data, zones)"
    with fairway.evaluate(file, text, layers={"zones": zones}) as seen:
        assert told(seen) == TOLD
        assert {one["partner"] for one in seen.changes} == {"depot"}


def test_standard_input_is_read(temporary):
    rows = tried("-", BOX, "--json", given=CSV).stdout.splitlines()
    assert len(rows) == len(TOLD)
    assert "data or file" in tried("-", "SELECT * FROM x", given=CSV, code=2).stderr


def test_an_address_is_no_file(temporary):
    done = tried("http://127.0.0.1:1/fixes.csv", BOX, code=2)
    assert "http://127.0.0.1:1/fixes.csv is an address" in done.stderr


def frame(**more: object) -> pd.DataFrame:
    columns = {
        "id": ["a", "b", "a", "b"],
        "lon": [1.0, 9, 8, 2],
        "lat": [1.0, 9, 8, 3],
        "t": pd.to_datetime([BEGIN + n for n in (1, 1, 2, 3)], unit="s", utc=True),
    }
    return pd.DataFrame({**columns, **more})


def geoarrow(kind: str, values: pa.Array, crs: object = None) -> pa.Table:
    """A table as GeoPandas gives it: what its column means stands in the metadata of the field."""
    metadata = {
        "ARROW:extension:name": kind,
        "ARROW:extension:metadata": json.dumps({} if crs is None else {"crs": crs}),
    }
    field = pa.field("geometry", values.type, metadata=metadata)
    table = pa.Table.from_pandas(frame()[["id", "t"]], preserve_index=False)
    return table.append_column(field, values)


def wkb() -> pa.Array:
    points = shapely.points(frame()["lon"], frame()["lat"])
    return pa.array(shapely.to_wkb(points).tolist(), pa.binary())


def pairs() -> pa.Array:
    values = frame()[["lon", "lat"]].to_numpy().ravel()
    return pa.FixedSizeListArray.from_arrays(pa.array(values), 2)


def structs() -> pa.Array:
    axes = [pa.array(frame()[name]) for name in ("lon", "lat")]
    return pa.StructArray.from_arrays(axes, names=["x", "y"])


@pytest.mark.spec("S12")
@pytest.mark.parametrize(
    "rows",
    [
        frame(),
        frame().set_index("t"),
        frame(id=pd.Categorical(["a", "b", "a", "b"])),
        frame(t=frame()["t"].dt.tz_convert("Europe/Berlin")),
        frame(t=[BEGIN + n for n in (1, 1, 2, 3)]),
        pa.Table.from_pandas(frame()),
        pa.RecordBatch.from_pandas(frame()),
        pa.table(frame()).cast(
            pa.schema(
                [
                    ("id", pa.string_view()),
                    ("lon", pa.float32()),
                    ("lat", pa.float64()),
                    ("t", pa.timestamp("ms", "UTC")),
                ]
            )
        ),
        geoarrow("geoarrow.wkb", wkb()),
        geoarrow("geoarrow.wkb", wkb(), "OGC:CRS84"),
        geoarrow("geoarrow.wkb", wkb(), {"id": {"authority": "EPSG", "code": 4326}}),
        geoarrow("geoarrow.point", pairs()),
        geoarrow("geoarrow.point", structs(), "EPSG:4326"),
    ],
    ids=lambda rows: type(rows).__name__,
)
def test_a_frame_gives_what_the_same_file_gives(rows, temporary):
    with fairway.evaluate(rows, BOX) as seen:
        assert told(seen) == TOLD
        assert [one["object"] for one in seen.at("2023-11-14T22:13:22")] == []
        assert [one["object"] for one in seen.at()] == ["b"]
    assert list(temporary.iterdir()) == []


@pytest.mark.spec("S12", "X14")
@pytest.mark.parametrize("order", [[3, 2, 1, 0], [0, 2, 1, 3], [2, 3, 0, 1]])
def test_rows_in_any_order_give_the_same(order, temporary):
    with fairway.evaluate(frame().iloc[order], BOX) as seen:
        assert told(seen) == TOLD
        assert seen.notes == ()
    Path("mixed.csv").write_text(csv_of(*(ROWS[number] for number in order)))
    with fairway.evaluate("mixed.csv", BOX) as seen:
        assert told(seen) == TOLD


def test_places_are_in_the_system_that_their_column_names(temporary):
    with fairway.evaluate(geoarrow("geoarrow.wkb", wkb(), "EPSG:3857"), BOX) as seen:
        assert seen.changes.crs == "EPSG:3857"
        assert told(seen) == TOLD
    with pytest.raises(fairway.ConfigError, match="has no EPSG number"):
        fairway.evaluate(geoarrow("geoarrow.wkb", wkb(), "ESRI:54009"), BOX)


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([1, 2], "a list gives no stream of Arrow"),
        (frame().iloc[:0], "has no rows"),
        (frame().drop(columns="t"), "looks like times"),
        (frame().drop(columns="lon"), "no column looks like x"),
    ],
    ids=["no frame", "no rows", "no times", "no place"],
)
def test_what_is_no_frame_of_fixes_is_refused(rows, why, temporary):
    with pytest.raises(fairway.ConfigError, match=why):
        fairway.evaluate(rows, BOX)
    assert list(temporary.iterdir()) == []


def test_a_query_that_was_built_is_evaluated_too(temporary):
    built = fairway.query("data").inside((0, 0, 5, 5))
    with fairway.evaluate(frame(), built) as seen:
        assert told(seen) == TOLD


def test_changes_stay_when_it_is_closed_and_answers_do_not(temporary):
    seen = fairway.evaluate(frame(), BOX)
    then = datetime(2023, 11, 14, 22, 13, 21)  # noqa: DTZ001 - as people write it
    assert [one["object"] for one in seen.at(then)] == ["a"]
    seen.close()
    assert told(seen) == TOLD
    with pytest.raises(fairway.ConfigError, match="closed"):
        seen.at()
    lost = fairway.evaluate(frame(), BOX)
    assert len(list(temporary.iterdir())) == 1
    del lost
    assert list(temporary.iterdir()) == []


@pytest.mark.spec("S12")
def test_a_sample_comes_with_the_package(temporary):
    done = tried("sample:ships", "SELECT * FROM ships INSIDE (24, 60, 26, 61)")
    assert "no fixes" not in done.stderr
    assert len(done.stdout.splitlines()) > 5
    assert "sample:ships" in tried("sample:cars", BOX, code=2).stderr


@pytest.mark.spec("S12")
def test_the_examples_of_the_interface_are_right(temporary):
    page = (ROOT / "docs" / "api.md").read_text()
    (session,) = re.findall(r"^```pycon\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    example = doctest.DocTestParser().get_doctest(session, {}, "api.md", None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    done = runner.run(example)
    assert done.attempted > 5
    assert done.failed == 0


@pytest.mark.spec("S12")
def test_the_readme_begins_with_what_runs(temporary):
    page = (ROOT / "README.md").read_text()
    first, _, rest = page.partition("\n```\n")
    assert "$ fairway try sample:ships" in first
    (program,) = re.findall(r"^```python\n(.*?)^```$", rest, re.DOTALL | re.MULTILINE)
    names: dict[str, fairway.Evaluation] = {}
    exec(program, names)
    assert "SUOKKI" in names["seen"].changes.table["object"].to_pylist()


@pytest.mark.spec("S12")
def test_it_needs_no_spark(file, tmp_path):
    code = (
        "import sys, fairway\n"
        f"seen = fairway.evaluate({str(file)!r}, {BOX!r})\n"
        "assert len(seen.changes) == 3\n"
        "assert not {'pyspark', 'py4j', 'delta'} & set(sys.modules)\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
