"""The nine BerlinMOD queries in continuous, windowed and snapshot form: what Fairway tells, beside brute force.

usage: python -m bench.berlinmod9 [--vehicles 50] [--each 600]

The corpus is a formula (`bench.berlinmod9_corpus`), so nothing is downloaded. Each query runs in a home of its own on
the local engine. Rows of a cell are taken from what is told, and compared one by one with those of
`bench.berlinmod9_brute`, which shares no code with Fairway. The last line is JSON; the exit code is 1 where any cell
differs.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from bench import berlinmod9_corpus as corpus
from bench.berlinmod9_brute import brute_force
from bench.berlinmod9_corpus import Fixes
from st_common.answers.sql import sql
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.run import run
from st_common.log.control import write_end
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.log_writer import bare_log

# Published rows and events/s of MobilityFlink on 50 vehicles with 600 fixes each, one job a cell: docs/berlinmod.md.
PUBLISHED = {
    "Q1-continuous": (50, 13_435),
    "Q1-windowed": (60, 28_169),
    "Q1-snapshot": (6_000, 33_520),
    "Q2-continuous": (600, 37_594),
    "Q2-windowed": (60, 39_894),
    "Q2-snapshot": (120, 38_810),
    "Q3-continuous": (30_000, 19_023),
    "Q3-windowed": (60, 23_603),
    "Q3-snapshot": (3_120, 34_722),
    "Q4-continuous": (8, 27_248),
    "Q4-windowed": (480, 26_525),
    "Q4-snapshot": (960, 27_959),
    "Q5-continuous": (7_171_498, 403),
    "Q5-windowed": (14_359, 32_787),
    "Q5-snapshot": (29_640, 27_804),
    "Q6-continuous": (30_000, 29_326),
    "Q6-windowed": (3_000, 31_283),
    "Q6-snapshot": (6_000, 32_293),
    "Q7-continuous": (15, 23_585),
    "Q7-windowed": (766, 23_006),
    "Q7-snapshot": (1_790, 20_422),
    "Q8-continuous": (30_000, 28_763),
    "Q8-windowed": (60, 29_528),
    "Q8-snapshot": (3_720, 36_320),
    "Q9-continuous": (1_199, 39_012),
    "Q9-windowed": (60, 37_927),
    "Q9-snapshot": (120, 42_493),
}
_REGIONS = {
    "near": "INSIDE CIRCLE (4.3517, 50.8503, 5 km)",
    "box": "INSIDE (4.30, 50.84, 4.36, 50.86)",
    "along": "INSIDE CORRIDOR ('LINESTRING(4.30 50.83, 4.36 50.87)', 5 km)",
    **{
        f"poi{name}": f"INSIDE CIRCLE ({x}, {y}, {metres} m)"
        for name, x, y, metres in corpus.PLACES
    },
}
# `{x}` and `{y}` are the ids of the vehicles that a query asks about.
_STATEMENTS = {
    "Q1": "REGISTER QUERY q AS SELECT * FROM vehicles EMIT EVERY",
    "Q2": "REGISTER QUERY q AS SELECT x, y FROM vehicles WHERE object = '{y}' EMIT EVERY",
    "Q3": "REGISTER QUERY q AS SELECT * FROM vehicles {near} EMIT EVERY",
    "Q4": "REGISTER QUERY q AS SELECT * FROM vehicles {box} EMIT EVERY",
    "Q5": "REGISTER QUERY q AS SELECT * FROM vehicles a JOIN vehicles b ON ST_DWithin(a, b, 5 km) {near}",
    "Q6": "REGISTER QUERY q AS SELECT ISTREAM (object, TRAVELLED(*) AS way_m, COUNT(*) AS fixes) "
    "FROM vehicles [RANGE 1 hour]",
    "Q7": """REGISTER QUERY poi1 AS SELECT * FROM vehicles {poi1} EMIT EVERY;
        REGISTER QUERY poi2 AS SELECT * FROM vehicles {poi2} EMIT EVERY;
        REGISTER QUERY poi3 AS SELECT * FROM vehicles {poi3} EMIT EVERY""",
    "Q8": "REGISTER QUERY q AS SELECT * FROM vehicles {along} EMIT EVERY",
    "Q9": """REGISTER QUERY q AS SELECT distance(a, b) AS apart_m FROM vehicles a JOIN vehicles b
        ON ST_DWithin(a, b, 100 km) WHERE a.object = '{x}' AND b.object = '{y}' EMIT EVERY""",
}
# Fixes as they are told while they qualify; who is in at each tick; pairs that are told in both orders: INSIDE is about
# the first of two, so both are near the centre.
_VIEWS = """
CREATE VIEW told AS SELECT * EXCLUDE (event_ts), epoch_ms(event_ts) - {start_ms} AS t FROM changes;
CREATE VIEW every AS SELECT *, t // {window_ms} AS part FROM told WHERE sign >= 0;
CREATE VIEW stays AS SELECT query, object, partner, epoch_ms(from_ts) - {start_ms} AS came,
    epoch_ms(to_ts) - {start_ms} AS went FROM visits;
CREATE VIEW at_tick AS SELECT * FROM range({tick_ms}, {span_ms} + 1, {tick_ms}) AS ticks (tick)
    JOIN stays ON came <= tick AND (went IS NULL OR went > tick);
CREATE VIEW met AS SELECT a.object, a.partner, greatest(a.came, b.came) AS came, least(a.went, b.went) AS went
    FROM stays a JOIN stays b ON a.object = b.partner AND a.partner = b.object AND a.object < a.partner
    AND (b.went IS NULL OR a.came < b.went) AND (a.went IS NULL OR b.came < a.went);
CREATE VIEW last_said AS SELECT part, arg_max(fields, (position, seq)) AS fields FROM every GROUP BY part;
CREATE VIEW said_at_tick AS SELECT tick, arg_max(fields, (position, seq)) AS fields
    FROM range({tick_ms}, {span_ms} + 1, {tick_ms}) AS ticks (tick) JOIN every ON t <= tick GROUP BY tick;
CREATE VIEW entries AS
    SELECT *, sign > 0 OR lag(part) OVER each IS DISTINCT FROM part AS is_first
    FROM (SELECT *, t // {window_ms} AS part FROM told) WINDOW each AS (PARTITION BY object ORDER BY position, seq);
"""
_CELLS = {
    "Q1-continuous": "SELECT object, t FROM told WHERE sign > 0",
    "Q1-windowed": "SELECT part, count(DISTINCT object) FROM every GROUP BY part",
    "Q1-snapshot": "SELECT tick, object FROM at_tick",
    "Q2-continuous": "SELECT t, fields->>'x', fields->>'y' FROM every",
    "Q2-windowed": "SELECT part, fields->>'x', fields->>'y' FROM last_said",
    "Q2-snapshot": "SELECT tick, fields->>'x', fields->>'y' FROM said_at_tick",
    "Q3-continuous": "SELECT object, t FROM every",
    "Q3-windowed": "SELECT part, count(DISTINCT object) FROM every GROUP BY part",
    "Q3-snapshot": "SELECT tick, object FROM at_tick",
    "Q4-continuous": "SELECT object, t FROM told WHERE sign > 0",
    "Q4-windowed": "SELECT part, object, t FROM entries WHERE is_first AND sign >= 0",
    "Q4-snapshot": "SELECT tick, object, t FROM range({tick_ms}, {span_ms} + 1, {tick_ms}) AS ticks (tick)"
    " JOIN told ON sign > 0 AND t <= tick",
    "Q5-continuous": "SELECT fix * {step_ms}, count(*) FROM range({fixes}) AS fixes (fix) JOIN met"
    " ON came <= fix * {step_ms} AND (went IS NULL OR went > fix * {step_ms}) GROUP BY fix",
    "Q5-windowed": "SELECT range // {window_ms} - 1, object, partner"
    " FROM range({window_ms}, {span_ms} + 1, {window_ms}) JOIN met ON came < range AND (went IS NULL OR went >= range)",
    "Q5-snapshot": "SELECT tick, object, partner FROM range({tick_ms}, {span_ms} + 1, {tick_ms}) AS ticks (tick)"
    " JOIN met ON came <= tick AND (went IS NULL OR went > tick)",
    "Q6-continuous": "SELECT object, t, fields->>'way_m' FROM every WHERE sign > 0",
    "Q6-windowed": "SELECT part, object, arg_max(fields->>'way_m', t) FROM every WHERE sign > 0 GROUP BY ALL",
    "Q6-snapshot": "SELECT tick, object, arg_max(fields->>'way_m', t)"
    " FROM range({tick_ms}, {span_ms} + 1, {tick_ms}) AS ticks (tick)"
    " JOIN every ON sign > 0 AND t <= tick GROUP BY ALL",
    "Q7-continuous": "SELECT query, object, min(t) FROM every GROUP BY ALL",
    "Q7-windowed": "SELECT part, query, object, min(t) FROM every GROUP BY ALL",
    "Q7-snapshot": "SELECT tick, query, object, first FROM range({tick_ms}, {span_ms} + 1, {tick_ms}) AS ticks (tick)"
    " JOIN (SELECT query, object, min(t) AS first FROM every GROUP BY ALL) ON first <= tick",
    "Q8-continuous": "SELECT object, t FROM every",
    "Q8-windowed": "SELECT part, count(DISTINCT object) FROM every GROUP BY part",
    "Q8-snapshot": "SELECT tick, object FROM at_tick",
    "Q9-continuous": "SELECT t, fields->>'apart_m' FROM every",
    "Q9-windowed": "SELECT part, fields->>'apart_m' FROM last_said",
    "Q9-snapshot": "SELECT tick, fields->>'apart_m' FROM said_at_tick",
}
Row = tuple[Any, ...]


def stream_of(fixes: Fixes) -> StreamSettings:
    """The stream `vehicles`. Pairs are judged at ticks, so there is one behind each fix."""
    return StreamSettings(
        name="vehicles",
        format="csv",
        time_unit="ms",
        max_ahead_s=None,
        tick_s=fixes.step_ms / 1000,
        columns=Columns(object="id", event_ts="t", x="lon", y="lat"),
    )


def ran(folder: Path, text: str, fixes: Fixes) -> tuple[Home, dict[str, float]]:
    """A home whose engine has told all changes of some queries; how long it took, with its archive and all tables."""
    home, stream = Home(folder), stream_of(fixes)
    register(home, {stream.name: stream}, parse(text), owner="bench")
    log = bare_log(home.log(stream.name))
    log.append(fixes.csv().encode(), arrival_us=0)
    write_end(log, arrival_us=0)
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    run(home, stream, until_idle=True)
    took_s = {
        "wall_s": round(time.perf_counter() - wall_s, 3),
        "cpu_s": round(time.process_time() - cpu_s, 3),
    }
    return home, took_s


def told_rows(home: Home, query: str, fixes: Fixes) -> dict[str, list[Row]]:
    """The rows of each form of a query, by its cell, from what was told."""
    numbers = {
        "start_ms": corpus.START_MS,
        "window_ms": corpus.WINDOW_MS,
        "tick_ms": corpus.TICK_MS,
        "span_ms": corpus.SPAN_MS,
        "step_ms": fixes.step_ms,
        "fixes": len(fixes.ms),
    }
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("changes", sql(home, "SELECT * FROM changes"))
        connection.register("visits", sql(home, "SELECT * FROM visits"))
        connection.execute(_VIEWS.format(**numbers))
        return {
            cell: connection.execute(text.format(**numbers)).fetchall()
            for cell, text in _CELLS.items()
            if cell.startswith(query)
        }


def statements(fixes: Fixes) -> dict[str, str]:
    """The statements of each query."""
    x, y = fixes.asked
    return {
        query: text.format(x=x, y=y, **_REGIONS) for query, text in _STATEMENTS.items()
    }


def are_equal(ours: list[Row], brute: list[Row]) -> bool:
    """Whether two lists have the same rows in any order; numbers with a fraction may differ by a thousandth."""
    if len(ours) != len(brute):
        return False
    (keys, values), (other_keys, other_values) = _parts(ours), _parts(brute)
    if keys != other_keys or len(values) != len(other_values):
        return False
    return bool(np.allclose(values, other_values, rtol=0, atol=1e-3))


def _parts(rows: list[Row]) -> tuple[list[Row], list[float]]:
    """The rows in order without their numbers with a fraction, and these numbers."""
    ordered = sorted(tuple(map(_value, row)) for row in rows)
    keys = [tuple(one for one in row if not isinstance(one, float)) for row in ordered]
    return keys, [one for row in ordered for one in row if isinstance(one, float)]


def _value(cell: Any) -> Any:
    """A text that is a number with a fraction as that number."""
    return float(cell) if isinstance(cell, str) and "." in cell else cell


def compared(
    cell: str, ours: list[Row], brute: list[Row], *, is_published: bool
) -> dict[str, Any]:
    """How many rows a cell has, as they were published too; pairs behind each fix are counted, not listed."""
    counts = [
        sum(row[1] for row in rows) if cell == "Q5-continuous" else len(rows)
        for rows in (ours, brute)
    ]
    published = PUBLISHED[cell][0] if is_published else None
    return {
        "published": published,
        "ours": counts[0],
        "brute": counts[1],
        "equal": are_equal(ours, brute),
    }


def main() -> int:
    """Runs all queries, prints a line for each cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vehicles", type=int, default=50)
    parser.add_argument("--each", type=int, default=600)
    given = parser.parse_args()
    fixes = corpus.made(given.vehicles, given.each)
    is_published = (given.vehicles, given.each) == (50, 600)
    brute, cells = brute_force(fixes), dict[str, dict[str, Any]]()
    print("cell            published      ours     brute  equal")
    for query, text in statements(fixes).items():
        with tempfile.TemporaryDirectory() as folder:
            home, took_s = ran(Path(folder), text, fixes)
            told = told_rows(home, query, fixes)
        for cell, rows in told.items():
            one = compared(cell, rows, brute[cell], is_published=is_published)
            cells[cell] = one | took_s
            published, is_equal = (
                one["published"] or "",
                "yes" if one["equal"] else "NO",
            )
            print(
                f"{cell:14} {published:>10} {one['ours']:>9} {one['brute']:>9}  {is_equal}"
            )
        rate = len(fixes.ms) / took_s["wall_s"]
        print(
            f"{query}: {rate:,.0f} fixes/s, {took_s['cpu_s']} s of CPU, all three forms"
        )
    print(json.dumps({"fixes": len(fixes.ms), "cells": cells}))
    return 0 if all(cell["equal"] for cell in cells.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
