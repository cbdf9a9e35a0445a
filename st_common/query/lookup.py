"""What is registered in a home: the fold of the control rows in its logs, which are the truth.

Names are unique over the streams of a home. The newest row of a name is what it is now: registered, failed or dropped.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate

from st_common.config.home import Home
from st_common.errors import QueryError
from st_common.query.commit import completed
from st_common.query.control import QueryRow, rows_of
from st_common.query.known import known, row_at
from st_common.query.meant import found
from st_common.query.problem import did_you_mean


def queries(home: Home, streams: Iterable[str] | None = None) -> list[QueryRow]:
    """The queries that are registered now, by name: for each the control row that made it so; with `why`, it failed.

    `streams` limits them to queries on these streams.
    """
    wanted = None if streams is None else set(streams)
    rows = (
        row
        for row in latest_rows(history(home)).values()
        if row.live and (wanted is None or row.stream in wanted)
    )
    return sorted(rows, key=lambda row: row.name)


def history(home: Home, name: str | None = None) -> list[QueryRow]:
    """The control rows of all queries, or of `name`: each stream's in log order, the streams merged by arrival."""
    completed(home)
    keyed: list[tuple[int, QueryRow]] = []
    for stream in logged_streams(home):
        rows = list(rows_of(home, stream))
        arrivals = accumulate(
            (row.arrival_us for row in rows), max
        )  # a clock that was set back changes no log order
        keyed += [
            pair
            for pair in zip(arrivals, rows, strict=True)
            if name in (None, pair[1].name)
        ]
    return [
        row
        for _, row in sorted(
            keyed, key=lambda pair: (pair[0], pair[1].stream, pair[1].position)
        )
    ]


def find(home: Home, name: str) -> QueryRow:
    """The newest control row of a query, also when it was dropped since. The case of the name does not count.

    Raises:
        QueryError: no query was ever registered by that name.
    """
    return row_at(home, find_brief(home, name))


def version_of(home: Home, name: str, version: int) -> QueryRow:
    """The control row that made a version of a query, which may be replaced or dropped since.

    Raises:
        QueryError: there was never such a query, or it has no such version.
    """
    called = find(home, name).name
    made = {row.version: row for row in history(home, called) if row.plan is not None}
    if version not in made:
        hint = f"its versions are {', '.join(map(str, sorted(made)))}"
        raise QueryError(f"query {called!r} has no version {version}", hint=hint)
    return made[version]


def logged_streams(home: Home) -> list[str]:
    """The names of the streams that have a log in this home, also those that the settings no longer describe."""
    return sorted(path.parent.name for path in (home.root / "streams").glob("*/log"))


def layers(home: Home) -> dict[str, int]:
    """The layers that are loaded in this home, with their newest versions."""
    from st_common.layers.announce import loaded_layers  # imports Delta

    return loaded_layers(home)


def latest_rows(rows: Iterable[QueryRow]) -> dict[str, QueryRow]:
    """The newest row of every name: the highest version, and its drop after what it dropped."""
    latest: dict[str, QueryRow] = {}
    for row in rows:
        before = latest.get(row.name)
        if row.op == "fail":
            if before is not None and before.live and before.version == row.version:
                latest[row.name] = replace(before, why=row.why)
            continue
        if row.op == "follow" and before is not None and before.version == row.version:
            latest[row.name] = replace(row, why=before.why)
        elif before is None or (row.version, not row.live) > (
            before.version,
            not before.live,
        ):
            latest[row.name] = row
    return latest


def find_brief(home: Home, name: str, *, store: bool = False) -> QueryRow:
    """The newest control row of a query without plan, text and owner; see `find`."""
    completed(home)
    latest = known(home, logged_streams(home), store=store).latest()
    called = found(name, latest)
    if called not in latest:
        raise QueryError(
            f"unknown query {name!r}",
            hint=did_you_mean(name, latest) or "`fairway query list` names all",
        )
    return latest[called]
