"""SQL over everything in a home: DuckDB reads the Delta tables in this process, without a JVM or a network."""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from st_common import tables
from st_common.answers.changes import changed_streams, parts
from st_common.answers.query_table import queries_and_objects
from st_common.answers.sql_allowed import named_in, require_allowed, require_small
from st_common.answers.sql_groups import create_group_views, require_in_groups
from st_common.answers.sql_places import add_places, calls_places
from st_common.asking import opened
from st_common.config.home import Home, require_own_view, view_name
from st_common.config.stream import StreamSettings
from st_common.contracts import load_contract
from st_common.errors import QueryError, TableError
from st_common.history.told import days_again, first_told, told_from
from st_common.history.visits import NEEDED, TOLD, visits_select
from st_common.layers.table import CONTRACT, dataset, layer_names
from st_common.operations.days import open_since
from st_common.query.cells import add_cells, calls_cells
from st_common.query.derived import queries_table
from st_common.query.lookup import history

_FORM = (None, ".", "location", "inside", None, ".", "region")
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_WIDTH = len(_FORM)
PAIRS = "inside pairs"  # no name that a text would have by chance
# Bounds first: they rule nearly all pairs out before the exact pairs are asked.
_CONDITION = (
    "({a}.x BETWEEN {b}.minx AND {b}.maxx AND {a}.y BETWEEN {b}.miny AND {b}.maxy"
    ' AND ({a}.stream, {a}.ID, {b}.ID) IN (FROM "{pairs}" SELECT (stream, object, query)))'
)

_PLAIN_TABLES = (
    "rejects",
    "regions",
    "quality",
    "stream_status",
    "dead_letters",
    "feature_faults",
)
_OF_ALL = ("changes", "visits", "differences")  # views of each stream, and of all
_LOCKED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": False,  # no file, no network, no extension
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,  # a table's name is never a variable of this process
    "temp_directory": "",
    "memory_limit": "2GB",
}
_BATCH = 8192
_LARGEST = 1 << 28
"""Bytes of an answer as Arrow has them, where it is bounded."""
_CONTRACT_OF = {"trials": "visits"}  # of tables that are not called as it is
_LIVE = ("QueryTable", "ObjectTable")
_SHOW_TABLES = re.compile(r"\s*SHOW\s+TABLES\s*;?\s*", re.IGNORECASE)
_PLAIN = (
    duckdb.ParserException,
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.ConversionException,
    duckdb.InvalidInputException,
    duckdb.InvalidTypeException,
    duckdb.NotImplementedException,
    duckdb.OutOfRangeException,
    duckdb.SyntaxException,
    duckdb.TypeMismatchException,
)
"""What is wrong with a text, and is said in words of its own."""
_KIND = re.compile(r"^[A-Z][A-Za-z ]* Error: ")
_PATH = re.compile(r"(?<![\w./-])/[^\s'\"]+")


StreamsOf = Callable[[], Mapping[str, StreamSettings]]


def sql(
    home: Home,
    text: str,
    streams_of: StreamsOf | None = None,
    given: Mapping[str, Any] | None = None,
    *,
    most: int | None = None,
) -> pa.Table:
    """The result of one SELECT over the views of a home; times are UTC.

    The views: `changes`, `visits` and `differences` (all streams, with the column stream), `changes_S`, `visits_S`,
    `differences_S`, `positions_S`, `latest_S`, `snapshots_S` for each stream S, `trial_S_T` for each of its trials T,
    `layer_L` for each layer L, `rejects`, `regions`, `queries`, `quality`, `stream_status`, `dead_letters`,
    `feature_faults`. A name with `-` is written with `_`. Views of tables that do not exist yet are empty. One of a
    table that is not read here refuses only texts that name it, or the view of all streams where it is of one. Those of
    a stream or a layer stand in the schema of its group too, and there its own name means the fixes of the stream, or
    the layer: `metro.buses`, `metro.roads`. DuckDB reaches nothing else: no files, no network, no variables of this
    process.

    Args:
        home: where the tables lie.
        text: one SELECT, or EXPLAIN of one; SHOW TABLES gives the names of the views.
        streams_of: gives the settings of the streams. With it there are also the schemas of groups, `QueryTable`,
            `ObjectTable` and the condition `a.location INSIDE b.region` (SPEC P8); called only when a text names one of
            these.
        given: values of parameters, `$name` in the text.
        most: so many rows are wanted, and no more are read than tell whether there are more: up to one more.

    Returns:
        The rows; of columns with the same name the second one gets `_1`, and so on.

    Raises:
        QueryError: the text is no SELECT, is too long, names something else than views and functions of values, or
            cannot be carried out; or the answer is too large.
        TableError: it names a table that is not read here.
    """
    require_small(text)
    with opened(_LOCKED) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        names, refused = _create_views(connection, home, text)
        if streams_of is not None:
            names += _LIVE
        if _SHOW_TABLES.fullmatch(text):
            names += _grouped(connection, home, streams_of, names)
            return pa.table({"name": sorted(names)})
        if streams_of is not None and any(one.lower() in text.lower() for one in _LIVE):
            text = rewritten(text)
            _register_live(connection, home, streams_of())
        try:
            _check(connection, home, text, streams_of, names, refused)
        except duckdb.Error as error:
            raise _refusal(error) from None
        if calls_cells(text.upper()):
            add_cells(connection)
        if calls_places(text.lower()):
            add_places(connection, streams_of().values() if streams_of else ())
        # From here on the text cannot undo any of these settings.
        connection.execute("SET lock_configuration = true")
        try:
            return _result(connection, text, given, most)
        except (duckdb.Error, pa.ArrowException, MemoryError) as error:
            raise _refusal(error) from None


def _check(
    connection: duckdb.DuckDBPyConnection,
    home: Home,
    text: str,
    streams_of: StreamsOf | None,
    names: list[str],
    refused: Mapping[str, TableError],
) -> None:
    """Refuses what a text may not name; makes the views of groups, where it names some of these.

    Raises:
        QueryError: see `sql`.
        TableError: it names one of the views that are refused.
    """
    named, views = named_in(connection, text), [*names, PAIRS]
    qualified = [table for table in named.tables if len(table) > 1]
    if streams_of is not None and qualified:
        groups = create_group_views(connection, home, streams_of(), names)
        require_in_groups([(one[-2], one[-1]) for one in qualified], groups)
        views += [f"{group}.{one}" for group, each in groups.items() for one in each]
    require_allowed(named, views)
    for table in named.tables:
        # In a group the name of a stream or a layer means the view of its fixes, or of itself.
        name = table[-1].casefold()
        meant = (f"positions_{name}", f"layer_{name}") if len(table) > 1 else ()
        for view in (name, *meant):
            if view in refused:
                raise refused[view]


def _grouped(
    connection: duckdb.DuckDBPyConnection,
    home: Home,
    streams_of: StreamsOf | None,
    names: list[str],
) -> list[str]:
    """The names of the views with their groups; none where no settings say them."""
    if streams_of is None:
        return []
    schemas = create_group_views(connection, home, streams_of(), names)
    return [f"{group}.{name}" for group, views in schemas.items() for name in views]


def _result(
    connection: duckdb.DuckDBPyConnection,
    text: str,
    given: Mapping[str, Any] | None,
    most: int | None,
) -> pa.Table:
    """The rows of a text; with `most` no more than one behind these."""
    reader = connection.sql(text, params=given).to_arrow_reader(_BATCH)
    rows = pa.Table.from_batches(_some(reader, most), reader.schema)
    names: list[str] = []
    for name in rows.column_names:  # two columns of one name would be one in JSON
        twins = (f"{name}_{number}" for number in count(1))
        names.append(next(twin for twin in chain([name], twins) if twin not in names))
    return rows.slice(0, None if most is None else most + 1).rename_columns(names)


def _some(reader: pa.RecordBatchReader, most: int | None) -> Iterator[pa.RecordBatch]:
    """The first rows of an answer.

    Raises:
        QueryError: they are too large.
    """
    rows = size = 0
    for batch in reader:
        yield batch
        rows, size = rows + len(batch), size + batch.nbytes
        if most is not None and size > _LARGEST:
            raise QueryError(
                f"the answer is larger than {_LARGEST >> 20} MB",
                hint="LIMIT, or fewer columns",
            )
        if most is not None and rows > most:
            return


def _create_views(
    connection: duckdb.DuckDBPyConnection, home: Home, text: str
) -> tuple[list[str], dict[str, TableError]]:
    """Creates all views, and gives their names and those that are refused; those have no rows.

    What only visits need is read for a text that names them.
    """
    refused: dict[str, TableError] = {}
    names: list[str] = list(_OF_ALL)
    for name, contract, source_of in _plain_sources(home):
        names.append(name)
        try:
            connection.register(name, source_of())
        except TableError as error:
            refused[name] = error
            if contract in _OF_ALL:
                refused[contract] = error
            connection.register(name, load_contract(contract).empty_table())
    streams = changed_streams(home)
    _require_distinct(streams)
    makers = {
        "changes": _create_changes,
        "visits": _create_visits if "visits" in text.lower() else _create_nothing,
    }
    for stream in streams:
        for table, create in makers.items():
            names.append(_view(table, stream))
            try:
                create(connection, home, stream, table)
            except TableError as error:
                refused[table] = refused[_view(table, stream)] = error
                _create_nothing(connection, home, stream, table)
    for table in _OF_ALL:
        _union_of_all(connection, table, streams)
    return list(dict.fromkeys(names)), refused


def _create_changes(
    connection: duckdb.DuckDBPyConnection, home: Home, stream: str, _: str
) -> None:
    """The changes of a stream: of its table, and behind these of the journal."""
    of_stream, view = parts(home, stream), _view("changes", stream)
    connection.register(f"stored {view}", of_stream.stored)
    connection.register(f"pending {view}", of_stream.pending)
    _union(connection, view, [f'FROM "stored {view}"', f'FROM "pending {view}"'])


def _require_distinct(streams: list[str]) -> None:
    by_view: dict[str, str] = {}
    for stream in streams:
        require_own_view(stream, by_view.setdefault(view_name(stream), stream))


def _create_nothing(
    connection: duckdb.DuckDBPyConnection, _: Home, stream: str, table: str
) -> None:
    """The view in its shape alone."""
    connection.register(_view(table, stream), load_contract(table).empty_table())


def _create_visits(
    connection: duckdb.DuckDBPyConnection, home: Home, stream: str, _: str
) -> None:
    """The visits of a stream: as they are stored for days that were processed again, else folded from its changes.

    Changes are read from the oldest day on that is not stored; who was in before is known from a snapshot.
    """
    view, stored = _view("visits", stream), f"stored {_view('visits', stream)}"
    connection.register(stored, _stored(home.table("visits", stream), "visits"))
    again = days_again(home, stream)
    since = _first_not_in(again, first_told(home, stream))
    told = told_from(home, stream, since)
    members = f"members {view}"
    connection.register(members, told.members)
    connection.register(
        f"again {view}", pa.table({"day": pa.array(again, pa.date32())})
    )
    columns, changes = ", ".join(NEEDED), f'"{_view("changes", stream)}"'
    needed = (
        f'(SELECT {columns} FROM "{members}" UNION ALL '  # noqa: S608, names of folders
        f"SELECT {columns} FROM {changes} WHERE position >= {told.position})"
    )
    closed = f"TIMESTAMPTZ '{open_since(home, stream) or date.min}'"
    known = f"max(event_ts) + INTERVAL 1 MICROSECOND, {closed}"
    until = f"(SELECT greatest({known}) FROM {changes})"  # noqa: S608
    folded = f"""
SELECT *, '{TOLD}' AS run FROM ({visits_select(needed, until)})
WHERE event_date >= DATE '{since}' AND event_date NOT IN (SELECT day FROM "again {view}")"""  # noqa: S608
    _union(connection, view, [f'SELECT * FROM "{stored}"', folded])  # noqa: S608


def _first_not_in(days: set[date], since: date | None) -> date:
    """The first day from one on that is not among some; without that one the first of all times."""
    if since is None:
        return date.min
    return next(day for n in count() if (day := since + timedelta(n)) not in days)


def _union_of_all(
    connection: duckdb.DuckDBPyConnection, table: str, streams: list[str]
) -> None:
    """A view of the rows of all streams, with the column stream in front."""
    if streams:
        # the names are those of folders in the home, which `checked_name` lets through
        each = [
            f"SELECT '{stream}' AS stream, * FROM \"{_view(table, stream)}\""  # noqa: S608
            for stream in streams
        ]
        _union(connection, table, each)
    else:
        stream, rows = pa.array([], pa.string()), load_contract(table).empty_table()
        connection.register(table, rows.add_column(0, "stream", stream))


def _register_live(
    connection: duckdb.DuckDBPyConnection,
    home: Home,
    streams: Mapping[str, StreamSettings],
) -> None:
    """The queries and objects as they are now; made for a text that asks for them, since it reads every last fix."""
    live = queries_and_objects(home, streams)
    for name, rows in zip(
        (*_LIVE, PAIRS), (live.queries, live.objects, live.inside), strict=True
    ):
        connection.register(name, rows)


def _union(
    connection: duckdb.DuckDBPyConnection, view: str, selects: list[str]
) -> None:
    union = " UNION ALL BY NAME ".join(selects)
    connection.execute(f'CREATE VIEW "{view}" AS {union}')


def _plain_sources(home: Home) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """The views that show one table each: their names, contracts, and what opens them."""
    yield "queries", "queries", lambda: queries_table(history(home))
    for name in _PLAIN_TABLES:
        yield name, name, partial(_stored, home.table(name), name)
    of_each = {
        "positions": "positions",
        "latest": "latest",
        "snapshots": "snapshots",
        "differences": "differences",
        "trials": "trial",
        "layers": "layer",
    }
    for table, view in of_each.items():
        parts = {path.name for path in home.table(table).glob("[!.]*")}
        if table == CONTRACT:  # of those that were dropped the old versions lie there
            parts = set(layer_names(home))
        if table == "differences":  # where nothing differs there is no table
            parts |= set(changed_streams(home))
        for part in sorted(parts):
            contract = _CONTRACT_OF.get(table, table)
            path = home.table(table) / part
            opened = (
                partial(dataset, home, part)
                if table == CONTRACT and tables.exists(path)
                else partial(_stored, path, contract)
            )
            yield _view(view, part), contract, opened


def _stored(path: Path, contract: str) -> ds.Dataset:
    """A Delta table as it stands; empty, with the columns of its contract, when there is none."""
    if tables.exists(path):
        return tables.dataset(path, contract=load_contract(contract))
    return ds.dataset(load_contract(contract).empty_table())


def _view(table: str, part: str) -> str:
    return f"{table}_{view_name(part)}"


def _refusal(error: Exception) -> QueryError:
    """One line for people, without the names of kinds, drawings and paths that DuckDB has."""
    if isinstance(
        error, (duckdb.OutOfMemoryException, pa.ArrowMemoryError, MemoryError)
    ):
        return QueryError(
            "the answer needs too much memory", hint="narrow it by WHERE or LIMIT"
        )
    if not isinstance(error, _PLAIN):
        return QueryError("the SELECT cannot be carried out", hint="write it otherwise")
    message = _KIND.sub("", " ".join(str(error).partition("\n\nLINE")[0].split()))
    message = _PATH.sub("PATH", re.sub(r" (Did you mean|Candidate) .*", "", message))
    hint = ""
    if re.search(r'syntax error at or near "(inside|region)"', message, re.IGNORECASE):
        hint = "O.location INSIDE Q.region, with O an ObjectTable and Q a QueryTable"
    return QueryError(message, hint=hint)


def rewritten(text: str) -> str:
    """The text with each `a.location INSIDE b.region` as a condition on the pairs in the view `PAIRS`.

    `O.location INSIDE Q.region` becomes

        (O.x BETWEEN Q.minx AND Q.maxx AND O.y BETWEEN Q.miny AND Q.maxy
         AND (O.stream, O.ID, Q.ID) IN (FROM "inside pairs" SELECT (stream, object, query)))

    Args:
        text: SQL, in which `a` and `b` are names of an ObjectTable and a QueryTable; anything else in it stays as it
            is, also what is no SQL.
    """
    try:
        tokens = DuckDB().tokenize(text)
    except TokenError:
        return text  # DuckDB says better what is wrong with it
    out, done = [], 0
    for at in range(len(tokens) - _WIDTH + 1):
        here = tokens[at : at + _WIDTH]
        if _is_condition(here):
            a, b = (text[token.start : token.end + 1] for token in (here[0], here[4]))
            out += [
                text[done : here[0].start],
                _CONDITION.format(a=a, b=b, pairs=PAIRS),
            ]
            done = here[-1].end + 1
    return "".join([*out, text[done:]])


def _is_condition(tokens: list[Token]) -> bool:
    return all(
        token.token_type in _NAMES
        if wanted is None
        else token.text.lower() == wanted and not _is_text(token)
        for token, wanted in zip(tokens, _FORM, strict=True)
    )


def _is_text(token: Token) -> bool:
    return token.token_type is TokenType.STRING
