"""The stream that a file becomes for one query: what FROM calls it, how it is read, and what of it is left out."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import stream_of_table
from st_common.detect.report import IF_ANY, Detected
from st_common.detect.several import detect_each
from st_common.engine.summary import RunSummary
from st_common.errors import ConfigError, QueryError
from st_common.query.builder import QueryBuilder
from st_common.query.plan import Plan
from st_common.query.plan_json import builder_of
from st_common.query.text import parse
from st_common.rejects.replay import rejects_of
from st_common.replay.source import NamedFile

NAMES = ("data", "file")
"""What FROM may always say."""

_NO_NAME = re.compile(r"[^a-z0-9_]+")
_MOST = 63


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What records do not say of themselves, and what they are judged beside.

    Attributes:
        columns: named columns by their keys in a stream's `columns`: `object`, `event_ts`, `x`, `y`, `place`.
        settings: further keys of the stream, as `conf/streams.toml` has them.
        layers: files of features, by the name of the layer that they become.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    layers: Mapping[str, Path | str] = field(default_factory=dict)

    def beside(self, columns: Mapping[str, str], crs: str | None) -> "Given":
        """The same, with columns of places that are known, and their system; unless others are named."""
        if {"x", "y", "place"} & self.columns.keys():
            return self
        known = {} if crs is None else {"crs": crs}
        return replace(
            self,
            columns={**columns, **self.columns},
            settings={**known, **self.settings},
        )


def stream_name(query: str | QueryBuilder | Plan, file: NamedFile) -> str:
    """What the stream is called: as FROM says, which may say `data`, `file` or the name of the file.

    Raises:
        QueryError: FROM says another one, or the text is no query.
    """
    own = name_of_file(file.name) if file.name == str(file.path) else ""
    names = [*dict.fromkeys(filter(None, (own, *NAMES)))]
    said = _said(query).removeprefix("default.")
    if said.casefold() not in names:
        raise QueryError(
            f"FROM says {said!r}, and these records are called {' or '.join(names)}",
            hint=f"FROM {names[0]}",
        )
    return said.casefold()


def _said(query: str | QueryBuilder | Plan) -> str:
    """The stream that a query names."""
    if not isinstance(query, str):
        return builder_of(query)[0].build().stream
    statements = parse(query)
    if len(statements) != 1 or (plan := statements[0].plan) is None:
        raise QueryError(
            f"expected one query, not {len(statements)} statements"
            if len(statements) != 1
            else f"expected a query, not {query.strip()[:40]!r}",
            hint="SELECT * FROM data INSIDE (..)",
        )
    if statements[0].past is not None:
        raise QueryError(
            "AS OF and BETWEEN ask a stream that has run",
            hint="leave it out, and ask for the answer at a time: --at T, or .at(T)",
        )
    return plan.stream


def name_of_file(name: str) -> str:
    """The name of a file without its endings, as a stream can be called; "" where nothing of it can be.

    Example:
        "Ships 2025.csv.gz"   ->   "ships_2025"
    """
    stem = Path(name).name.partition(".")[0].lower()
    return _NO_NAME.sub("_", stem).strip("_").lstrip("0123456789_")[:_MOST]


def read_as(
    files: Sequence[NamedFile], name: str, given: Given
) -> tuple[Detected, StreamSettings]:
    """How files are read: what was seen in them, and the settings of the stream that they become.

    Raises:
        ConfigError: one cannot be read, or hardly anything of it.
    """
    if "engine" in given.settings:
        raise ConfigError("a query is tried on the engine local", hint="remove engine")
    columns = dict(given.columns)
    file = files[0]
    seen = detect_each(
        files,
        owner=columns.pop("object", None),
        named=columns,
        kept=(IF_ANY,),
    )
    table = merged({**seen.table, "engine": "local"}, given.settings)
    stream = stream_of_table(name, table, Path(file.name))
    if given.settings:
        seen = replace(detect_each(files, stream), notes=seen.notes)
    if seen.odd:
        raise ConfigError(f"{seen.place}: {seen.odd}", hint=seen.mend)
    if not seen.is_readable:
        raise ConfigError(
            f"of {seen.records:,} records of {seen.place} {seen.good:,} can be read"
            f"{_because(seen.reasons)}",
            hint="name its columns, or how they are read: docs/formats.md, docs/settings.md",
        )
    if stream.columns.event_ts is None:
        raise ConfigError(
            f"no column of {file.name} looks like times, and its records have no order without",
            hint=f"--time COLUMN names it; {', '.join(seen.table['columns'])} are found",
        )
    return replace(seen, table=table), stream


def merged(table: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """A table of settings with some of its keys replaced, in tables inside it too."""
    inside = {
        key: merged(table[key], value)
        for key, value in more.items()
        if isinstance(value, dict) and isinstance(table.get(key), dict)
    }
    return {**table, **more, **inside}


def left_out(
    home: Home, stream: str, records: int, summary: RunSummary
) -> Iterator[str]:
    """What of the records changes nothing, and why; a sentence each.

    Args:
        home: where they were judged.
        stream: as which.
        records: how many there were.
        summary: the counts of the run.
    """
    of_all = f"of {summary.fixes:,} fixes"
    if summary.rejects:
        reasons = rejects_of(home, stream, columns=("reason",))["reason"]
        yield (
            f"{summary.rejects:,} of {records:,} records {_are(summary.rejects)} no fixes"
            f"{_because(Counter(reasons.to_pylist()))}"
        )
    if summary.late:
        yield (
            f"{summary.late:,} {of_all} {_are(summary.late)} late and left out; lateness_s waits for them"
        )
    if summary.double == 1:
        yield f"1 {of_all} has the time of an earlier one of its object, and changes nothing"
    elif summary.double:
        yield f"{summary.double:,} {of_all} have the time of an earlier one of their object, and change nothing"
    if summary.cut:
        yield f"{summary.cut:,} {of_all} {_are(summary.cut)} beyond what window_rows keeps of an object"
    if filtered := sum(summary.filtered.values()):
        yield f"{filtered:,} {of_all} {_are(filtered)} filtered{_because(summary.filtered)}"
    for name, count in summary.nulled.items():
        yield f"{name} is null in {count:,} fixes: their text was of another type"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _because(counts: Mapping[str, int]) -> str:
    """The reasons, the most frequent first: `: 3 bad_time, 1 no_position`."""
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    said = ", ".join(f"{count:,} {reason}" for reason, count in ordered)
    return f": {said}" if said else ""
