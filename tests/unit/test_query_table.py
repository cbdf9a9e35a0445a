"""The query table can be queried: who is inside of whose region is what the answers say (SPEC P8)."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from st_common.answers.answers import answer
from st_common.answers.sql import rewritten, sql
from st_common.cli import app
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.run import run
from st_common.errors import QueryError
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.log_writer import bare_log

COLUMNS = Columns(object="id", event_ts="t", x="x", y="y", gone="gone")
STREAMS = {
    name: StreamSettings(
        name=name,
        format="csv",
        columns=COLUMNS,
        time_unit="s",
        max_ahead_s=None,
        crs=crs,
        silence_s=40,
        engine="local",
    )
    for name, crs in (("cars", "EPSG:4326"), ("robots-2", "planar"))
}
REGIONS = {
    "box": "(0.2, 0.2, 0.6, 0.7)",
    "circle": "CIRCLE (0.5, 0.5, {radius} m)",
    "area": "'POLYGON((0.1 0.1, 0.9 0.2, 0.5 0.9, 0.1 0.1))'",
    "moving_box": "('M', 'o7', 0.4, 0.3)",
    "moving_box_in_metres": "('M', 'o8', {radius} m, {radius} m)",
    "moving_circle": "('M', 'o9', {radius} m)",
    "around_who_is_gone": "('M', 'o0', 1, 1)",
    "around_who_is_silent": "('M', 'o1', 1, 1)",
    "around_nobody": "('M', 'nobody', 1, 1)",
}
PRINTED = "SELECT Q.ID, O.ID FROM QueryTable Q, ObjectTable O WHERE O.location INSIDE Q.region"


def statements(stream: str, radius: float) -> str:
    return "".join(
        f'REGISTER QUERY {stream[:4]}_{name} AS SELECT * FROM "{stream}" INSIDE {region.format(radius=radius)};'
        for name, region in REGIONS.items()
    )


def fixes(seed: int) -> bytes:
    """60 objects for a minute; o0 says that it goes, o1 says nothing more after its first fix."""
    rng = np.random.default_rng(seed)
    lines = ["id,t,x,y,gone"]
    for t in range(0, 61, 10):
        for n, (x, y) in enumerate(rng.random((60, 2))):
            if n > 1 or not t:
                lines.append(
                    f"o{n},{t},{x!r},{y!r},".replace("np.float64(", "").replace(")", "")
                )
    return "\n".join([*lines, "o0,60,,,true"]).encode()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(tmp_path_factory.mktemp("home"))
    text = statements("cars", 30_000) + statements("robots-2", 0.3)
    text += "REGISTER QUERY date_line AS SELECT * FROM cars INSIDE CIRCLE (179.9, 0.5, 20010 km);"
    text += "REGISTER QUERY nearest AS SELECT * FROM cars KNN (3, 0.5, 0.5);"
    text += "REGISTER QUERY all_of_them AS SELECT * FROM cars;"
    text += "REGISTER QUERY dropped AS SELECT * FROM cars INSIDE (0, 0, 1, 1); DROP QUERY dropped;"
    register(home, STREAMS, parse(text), owner="ada")
    for number, (name, stream) in enumerate(STREAMS.items()):
        log = bare_log(home.log(name))
        log.append(fixes(number), arrival_us=0)
        log.append(b'{"op":"end"}\n', arrival_us=0, control=True)
        run(home, stream, until_idle=True)
    return home


@pytest.fixture
def ask(home: Home) -> Callable[[str], list[tuple]]:
    return lambda text: [
        tuple(row.values()) for row in sql(home, text, lambda: STREAMS).to_pylist()
    ]


@pytest.mark.spec("P8")
def test_the_printed_select_gives_the_answers_of_all_queries_with_a_region(home: Home):
    found = sql(home, PRINTED, lambda: STREAMS).to_pylist()
    names = [f"{stream[:4]}_{name}" for stream in STREAMS for name in REGIONS] + [
        "date_line"
    ]
    answers = {name: set(answer(home, name)["object"].to_pylist()) for name in names}
    assert {name for name in names if not answers[name]} == {
        name for name in names if "_around_" in name
    }
    assert sorted((row["ID"], row["ID_1"]) for row in found) == sorted(
        (name, member) for name in names for member in answers[name]
    )
    assert len(answers["cars_moving_circle"]) > 5
    assert "o9" not in answers["cars_moving_circle"]


@pytest.mark.spec("P8")
def test_the_condition_stands_anywhere_in_a_select(ask: Callable[[str], list[tuple]]):
    pairs = ask(PRINTED)
    rest = 'FROM QueryTable AS "the q" JOIN objecttable o ON o.Location inside "the q".REGION'
    assert sorted(ask(f'SELECT "the q".ID, o.ID {rest}')) == sorted(pairs)
    per_query = ask(
        f'SELECT "the q".ID, count(*) {rest} GROUP BY ALL HAVING count(*) > 5 ORDER BY ALL -- busy\n'
    )
    assert dict(per_query)["cars_box"] == sum(query == "cars_box" for query, _ in pairs)
    every = ask("SELECT q.ID, o.ID FROM QueryTable q, ObjectTable o")
    outside = ask(
        "SELECT q.ID, o.ID FROM QueryTable q, ObjectTable o WHERE NOT coalesce(o.location INSIDE q.region, false)"
    )
    assert len(outside) == len(every) - len(pairs)
    assert ask("SELECT 'O.location INSIDE Q.region' FROM QueryTable LIMIT 1") == [
        ("O.location INSIDE Q.region",)
    ]


@pytest.mark.spec("P8")
def test_what_the_two_tables_hold(ask: Callable[[str], list[tuple]]):
    shown = "SELECT version, stream, kind, focal, region, minx, maxy FROM QueryTable WHERE ID = '{}'"
    assert ask(shown.format("cars_box")) == [
        (1, "cars", "box", None, "(0.2, 0.2, 0.6, 0.7)", 0.2, 0.7)
    ]
    assert ask(shown.format("nearest")) == [
        (1, "cars", "k nearest", None, None, None, None)
    ]
    assert ask(shown.format("robo_around_nobody")) == [
        (1, "robots-2", "moving box", "nobody", "('M', 'nobody', 1, 1)", None, None)
    ]
    assert ask(shown.format("dropped")) == []
    centre = "SELECT abs((q.minx + q.maxx) / 2 - o.x) < 1e-6, q.maxx - q.minx < 0.6 FROM QueryTable q, ObjectTable o "
    assert ask(
        centre
        + "WHERE q.ID = 'cars_moving_circle' AND o.stream = q.stream AND o.ID = q.focal"
    ) == [(True, True)]
    assert ask(
        "SELECT stream, count(*), max(epoch(event_ts)) FROM ObjectTable GROUP BY ALL ORDER BY ALL"
    ) == [("cars", 58, 60.0), ("robots-2", 58, 60.0)]
    assert ask(
        "SELECT count(*) FROM ObjectTable WHERE location = format('POINT({} {})', x, y)"
    ) == [(116,)]


def test_without_fixes_the_tables_are_empty_and_without_settings_they_are_unknown(
    tmp_path: Path,
):
    empty = Home(tmp_path)
    assert sql(empty, PRINTED, lambda: STREAMS).num_rows == 0
    register(
        empty,
        STREAMS,
        parse("REGISTER QUERY q AS SELECT * FROM cars INSIDE ('M', 'o7', 1, 1)"),
        owner="ada",
    )
    assert sql(
        empty, "SELECT ID, minx FROM QueryTable", lambda: STREAMS
    ).to_pylist() == [{"ID": "q", "minx": None}]
    with pytest.raises(QueryError, match="no view 'QueryTable'"):
        sql(empty, "SELECT * FROM QueryTable")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SELECT * FROM QueryTabel", "did you mean QueryTable?"),
        (
            "SELECT * FROM QueryTable, ObjectTable WHERE location INSIDE region",
            "O.location INSIDE Q.region, with O",
        ),
        (
            "SELECT * FROM changes c WHERE c.location INSIDE c.region",
            "O.location INSIDE Q.region, with O",
        ),
    ],
)
def test_what_is_nearly_right_is_told(home: Home, text: str, says: str):
    with pytest.raises(QueryError) as caught:
        sql(home, text, lambda: STREAMS)
    assert says in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 'open",
        "",
        "O.location INSIDE",
        "SELECT a INSIDE b",
        "O.location INSIDE Q.text",
    ],
)
def test_other_texts_stay_as_they_are(text: str):
    assert rewritten(text) == text


@pytest.mark.spec("P8", "C7")
def test_the_command_answers_it_too(home: Home, tmp_path: Path):
    conf = tmp_path / "streams.toml"
    head = 'format = "csv"\ntime_unit = "s"\nsilence_s = 40\nmax_ahead_s = "off"\n'
    columns = (
        'columns = { object = "id", event_ts = "t", x = "x", y = "y", gone = "gone" }\n'
    )
    conf.write_text(f"[streams.cars]\n{head}{columns}")
    argv = [
        "--home",
        str(home.root),
        "--conf",
        str(tmp_path),
        "sql",
        f"{PRINTED} AND Q.ID = 'cars_box'",
        "--format",
        "csv",
    ]
    found = CliRunner().invoke(app, argv, prog_name="fairway")
    assert found.exit_code == 0, found.output
    assert len(found.output.splitlines()) - 1 == len(answer(home, "cars_box"))
