"""What stays of an interval show: selected columns and several values, beside DuckDB over the fixes themselves."""

import json
import tempfile
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.batch.asking import asked
from st_common.config.home import Home
from st_common.engine.run import run
from st_common.query.past import Past
from st_common.query.text import parse
from tests.kit.effort import tries
from tests.kit.grid_days import HOUR_S, T0, settings
from tests.kit.log_writer import bare_log

pytestmark = pytest.mark.spec("X10", "P2", "G9")

STREAM = settings(attributes={"load": "string"})
END_S = 3 * 24 * HOUR_S
SELECTS = {
    "came": "SELECT load, x FROM grid INSIDE (0, 0, 5, 5)",
    "every": "SELECT load, x FROM grid INSIDE (0, 0, 5, 5) EMIT EVERY",
    "groups": "SELECT load, COUNT(*) AS n, AVG(x) AS mean FROM grid INSIDE (0, 0, 5, 5) GROUP BY load",
}
# What stands after each fix, and for how long it stays the same: a stay goes on while nothing between says otherwise.
_STANDING = """
CREATE TEMP VIEW instants AS
    SELECT t, row_number() OVER (ORDER BY t) AS n, lead(t) OVER (ORDER BY t) AS next FROM fixes;
CREATE TEMP VIEW standing AS
    SELECT i.t, i.n, i.next, f.id, f.load, f.x FROM instants i
    CROSS JOIN (SELECT DISTINCT id FROM fixes) AS o ASOF JOIN fixes f ON f.id = o.id AND f.t <= i.t
    WHERE f.x <= 5 AND f.y <= 5;
CREATE TEMP VIEW shown_came AS SELECT *, id AS object, {'load': load, 'x': x} AS shows, '' AS same FROM standing;
CREATE TEMP VIEW shown_every AS FROM shown_came;
CREATE TEMP VIEW shown_groups AS
    SELECT t, n, next, load AS object, {'load': load, 'n': count(*), 'mean': avg(x)} AS shows, shows::VARCHAR AS same
    FROM standing GROUP BY t, n, next, load;
"""
_STAYS = """
WITH numbered AS (
    SELECT *, n - row_number() OVER (PARTITION BY object, same ORDER BY n) AS island FROM shown_{name}
), stays AS (
    SELECT object, min(t) AS came, CASE WHEN count(next) = count(*) THEN max(next) END AS gone,
           list({{'t': t, 'shows': shows}} ORDER BY t) AS told
    FROM numbered GROUP BY object, same, island
)
SELECT object, greatest(came, low) AS from_ts,
    CASE WHEN gone < high THEN gone WHEN high < (SELECT max(high) FROM parts) THEN high END AS to_ts,
    list_filter(told, lambda one: one.t < high AND ({every} OR one.t = came))[-1].shows AS shows
FROM stays JOIN parts ON came < high AND (gone IS NULL OR gone > low) ORDER BY object, from_ts"""


@st.composite
def trips(draw):
    """Fixes at times of their own, none at midnight: id, seconds after `T0`, x, y, load."""
    gaps = draw(st.lists(st.sampled_from([60, HOUR_S, 7 * HOUR_S]), max_size=30))
    at, fixes = 7, []
    for gap in gaps:
        at += gap
        place = st.integers(0, 10)
        load = draw(st.sampled_from(["coal", "sand"]))
        fixes.append((draw(st.sampled_from("abc")), at, draw(place), draw(place), load))
    return [fix for fix in fixes if fix[1] < END_S]


def archived(home, fixes):
    """Runs the stream over the fixes, and one behind them that is nowhere near."""
    epoch = round(T0.timestamp())
    lines = [f"{i},{epoch + t},{x},{y},,{load}" for i, t, x, y, load in fixes]
    last = f"z,{epoch + END_S + 60},99,99,,"
    text = "\n".join(["id,t,x,y,gone,load", *lines, last])
    bare_log(home.log("grid")).append(text.encode(), arrival_us=0)
    run(home, STREAM, until_idle=True)


def by_database(fixes, name, since, until):
    """The stays that DuckDB finds: object, beginning, end, what it shows."""
    edges = [since, *(T0 + timedelta(days=day) for day in range(5)), until]
    inside = sorted({edge for edge in edges if since <= edge <= until})
    rows = [(i, T0 + timedelta(seconds=t), *more) for i, t, *more in fixes]
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(
            "CREATE TABLE fixes (id TEXT, t TIMESTAMPTZ, x DOUBLE, y DOUBLE, load TEXT);"
            "CREATE TABLE parts (low TIMESTAMPTZ, high TIMESTAMPTZ)"
        )
        for row in rows:
            connection.execute("INSERT INTO fixes VALUES (?, ?, ?, ?, ?)", row)
        for part in pairwise(inside):
            connection.execute("INSERT INTO parts VALUES (?, ?)", part)
        connection.execute(_STANDING)
        text = _STAYS.format(name=name, every=name == "every")
        return connection.execute(text).fetchall()


def by_product(home, text, since, until):
    (statement,) = parse(text)
    past = Past(since=since, until=until)
    rows = pa.concat_tables(asked(home, STREAM, statement.plan, past)).to_pylist()
    shown = ("object", "from_ts", "to_ts")
    told = [(*(row[name] for name in shown), json.loads(row["fields"])) for row in rows]
    return sorted(told, key=lambda row: row[:2])


@tries(6)
@given(trips(), st.integers(0, 30), st.integers(31, 71))
def test_stays_show_what_the_database_finds_over_the_fixes(fixes, first_h, last_h):
    since, until = T0 + timedelta(hours=first_h), T0 + timedelta(hours=last_h)
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        archived(home, fixes)
        for name, text in SELECTS.items():
            wanted = by_database(fixes, name, since, until)
            assert by_product(home, text, since, until) == wanted, name
