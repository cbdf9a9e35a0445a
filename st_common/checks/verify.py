"""Does the answer hold? Brute force over the table `positions` against the folded changes (SPEC X1).

It shares nothing with the engines: which fixes count follows from running maxima over the whole history (`history`),
and answers come from plain columns, shapely and DuckDB. Queries at ticks are judged at the last one that was due. Each
change is also held against the fixes for the place that it names (ADR 92).

Old days of `changes` or `positions` may be deleted; then some of it cannot be checked:

    changes of days      1    2    3 | 4    5    6        1 to 3 were deleted
    member since day 2   +           |                    nobody knows: not checked
    member since day 5               |      +             checked, and who left in vain

What a run has found stands in a notebook, by which the next one goes on from there:

    streams/S/verified.json    {"key": .., "end": .., "done": {query: what was found}}

It counts as long as what it was found of is the same: every change and every event before `end`, and the queries that
were registered there. More of the log changes nothing: the next run verifies up to the same place.
"""

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from st_common import tables
from st_common.answers.changes import stream_changes
from st_common.answers.lateness import lateness_of
from st_common.checks.answers import (
    Counted,
    counted,
    focal_of,
    judged_rows,
    members_at,
    stays_until,
    value_text,
    values_of,
)
from st_common.checks.archived import archived_history, controls_of
from st_common.checks.history import (
    FIX,
    LATER,
    History,
    Moment,
    Registered,
    Times,
    registered_by,
)
from st_common.checks.nested import Answer, answer_before, expected_answer
from st_common.checks.visits import Emitted, Lived, lived
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.archiver import EVERY_S
from st_common.errors import QueryError, StorageError, TransientError
from st_common.log.log import Log
from st_common.operations.launcher import find
from st_common.operations.records import read_record, write_record
from st_common.position import position_of
from st_common.query.incident import Incident
from st_common.query.plan import Aggregate, Plan
from st_common.reference.metric import SCALED

_SEEDED = "it began with what came before it (REGISTER .. FROM), which brute force does not know"
_IN_DOUBT = "its values depend on how exactly metres are measured"
NOTES = "verified.json"
_CHANGES = ["position", "seq", "query", "object", "partner", "sign", "cause", "value"]
_EVENTS = ["position", "object", "ts", "x", "y", "kind", "effect"]
_EVERY_S = 1.0  # between two writes


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What was found of one query at a log position: members missing from its answer, members too many, wrong places.

    A group of an aggregate that has another value is both, and so is a member that was told another VALID UNTIL. Metres
    on degrees are measured in two ways that differ by up to 0.01 %: average speeds may differ by that, and objects of
    which a fix is in doubt by more. Not `checked` are other values over members that are in doubt. Of a fence all
    events count, also those that lead to no answer, but for visits that are in doubt. `misplaced` are changes that say
    another place than the fixes do (ADR 92). `unchecked` says what was not looked at, or why. `members` is None where
    the answer was not looked at. Of the `fixes` of the stream so many are `late`: they are in no answer, nor in what
    it is compared with.
    """

    query: str
    position: int
    members: int | None
    missing: int
    extra: int
    misplaced: int = 0
    checked: bool = True
    unchecked: str = ""
    fixes: int = 0
    late: int = 0
    failed: bool = False

    @property
    def holds(self) -> bool:
        """Whether the folded changes equal the brute force, and their places those of fixes."""
        return not (self.missing or self.extra or self.misplaced or self.failed)


@dataclass(slots=True)
class Notebook:
    """What was found of queries so far, kept in the home.

    Attributes:
        path: the file.
        done: what was found, by query.
        begun: whether it was begun anew, for what was found before is of something else.
        before: of how many queries something had been found.
    """

    path: Path
    done: dict[str, Verified] = field(default_factory=dict)
    begun: bool = True
    before: int = 0
    _key: str = ""
    _end: int = 0
    _written_s: float = 0.0

    @staticmethod
    def of(folder: Path, *, goes_on: bool) -> "Notebook":
        """That of a stream, by its folder; empty unless it goes on with what was found before."""
        notebook = Notebook(folder / NOTES)
        noted = read_record(notebook.path) if goes_on else None
        if noted is not None:
            notebook._key, notebook._end = noted["key"], noted["end"]
            notebook.done = {
                name: Verified(**one) for name, one in noted["done"].items()
            }
        return notebook

    def end(self, reached: int) -> int:
        """Up to which position is verified: as before, when the tables reach as far."""
        return self._end if self.done and self._end <= reached else reached

    def open(
        self,
        end: int,
        since: int,
        times: Times,
        frame: pd.DataFrame,
        changes: pd.DataFrame,
        registered: Mapping[str, Registered],
    ) -> None:
        """Keeps what was found before if it was of the very same rows and queries; else nothing."""
        key = _key_of(end, since, times, frame, changes, registered)
        self.begun = key != self._key
        self.before = len(self.done)
        if self.begun:
            self.done = {}
        self._key, self._end = key, end

    def said(self) -> str:
        """In words what of it was found before."""
        if not self.before:
            return "nothing was verified before"
        if self.begun:
            return "what was verified before has changed: verified anew"
        return f"{self.before} queries were verified before, up to the same place"

    def note(self, one: Verified) -> None:
        """Takes down what was found of a query; on the disk at most once a second."""
        self.done[one.query] = one
        if time.monotonic() - self._written_s >= _EVERY_S:
            self.write_if_open()

    def write_if_open(self) -> None:
        """Puts all of it on the disk, if something was found; where nothing can be written it is not kept."""
        if self._key and self.done:
            self._written_s = time.monotonic()
            with suppress(StorageError, OSError):
                self._write()

    def _write(self) -> None:
        done = {name: asdict(one) for name, one in self.done.items()}
        noted = {"key": self._key, "end": self._end, "done": done}
        write_record(self.path, noted)


def _key_of(
    end: int,
    since: int,
    times: Times,
    frame: pd.DataFrame,
    changes: pd.DataFrame,
    registered: Mapping[str, Registered],
) -> str:
    """A checksum of everything that answers are compared with."""
    digest = hashlib.blake2b(f"{end} {since} {times}".encode(), digest_size=16)
    attributes = [name for name in frame if str(name).startswith("@")]
    parts = ((changes, _CHANGES), (frame, [*_EVENTS, *attributes]))
    for rows, columns in parts:
        hashed = pd.util.hash_pandas_object(rows[columns], index=False)
        digest.update(np.sort(hashed.to_numpy()).tobytes())
    for name, query in sorted(registered.items()):
        digest.update(repr((name, query)).encode())
    return digest.hexdigest()


def verify(
    home: Home, stream: StreamSettings, query: str | None = None
) -> list[Verified]:
    """The answer of one query, or of all that are registered, checked up to where both tables reach.

    Raises:
        QueryError: there is no such query at that position, or nothing was archived and nothing runs.
        TransientError: nothing is archived yet, and the engine will.
    """
    return list(verified(home, stream, None if query is None else [query]))


def verified(
    home: Home,
    stream: StreamSettings,
    names: Sequence[str] | None = None,
    *,
    since: int = 0,
    notebook: Notebook | None = None,
) -> Iterator[Verified]:
    """As `verify`, one query after the other as soon as it is checked.

    A query that cannot be evaluated is one of them, and says why; the others go on.

    Args:
        home: the home folder; nothing in it is changed.
        stream: the settings of the stream.
        names: the queries; None: all that are registered.
        since: of what was emitted before this position neither places nor events of fences and incidents are checked;
            answers are as ever.
        notebook: has what was verified before, and is told what is; see `Notebook`.

    Raises:
        QueryError: a query is not registered at that position, or nothing was archived and nothing runs.
        TransientError: nothing is archived yet, and the engine will.
    """
    end = _reached(home, stream)
    if notebook is not None:
        end = notebook.end(end)
    controls = controls_of(Log(home.log(stream.name)), end)
    registered = registered_by(controls, stream.unit_m)
    wanted = _wanted(registered, stream, names)
    if tables.has_deletions(home.table("positions", stream.name)):
        why = "days of the fixes that it follows from were deleted"
        yield from (_not_verified(query, end, why) for query in wanted)
        return
    if not wanted:
        return
    history, frame = archived_history(home, stream, controls, end)
    changes = stream_changes(home, stream.name).to_pandas()
    changes = changes[changes["position"] < end]
    seen = lateness_of(home, stream)
    kept = _kept_of(home, stream.name, changes)
    emitted = _Changes(changes, kept, end, since, history.now())
    if notebook is not None:
        notebook.open(end, since, history.times, frame, changes, registered)
        done = notebook.done
        yield from [done[one.name] for one in wanted if one.name in done]
        wanted = [one for one in wanted if one.name not in done]
    for one in _each(wanted, history, frame, emitted):
        found = one
        if one.members is not None:
            found = replace(one, fixes=seen.fixes, late=seen.late)
        if notebook is not None:
            notebook.note(found)
        yield found


def _wanted(
    registered: Mapping[str, Registered],
    stream: StreamSettings,
    names: Sequence[str] | None,
) -> list[Registered]:
    """The registered queries of some names, or all, as they were registered."""
    for name in names or ():
        if name not in registered:
            raise QueryError(
                f"stream {stream.name!r} has no query {name!r}",
                hint="`fairway query list` names them",
            )
    asked = set(registered if names is None else names)
    return [one for name, one in registered.items() if name in asked]


_DAY_US = 86_400_000_000
_END = 1 << 62  # after all rows, and all times


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What is left of `changes` after rows were deleted: from which row of the log, and from which day on."""

    position: int
    day_us: int

    def has(self, position: int, event_us: int) -> bool:
        """Whether a change of this row and time would still be there."""
        return position >= self.position and event_us >= self.day_us


def _kept_of(home: Home, stream: str, changes: pd.DataFrame) -> Kept | None:
    """What is left of the changes of a stream; None where none were ever deleted."""
    if not tables.has_deletions(home.table("changes", stream)):
        return None
    if not len(changes):
        return Kept(position=_END, day_us=_END)
    event_us = changes["event_ts"].dt.as_unit("us").astype(np.int64)
    day_us = int(event_us.min()) // _DAY_US * _DAY_US
    return Kept(position=int(changes["position"].min()), day_us=day_us)


@dataclass(frozen=True, slots=True)
class _Changes:
    """What was emitted before the position `end`, as far as it is kept; and from where on events are looked at.

    `changes` are those of all queries, or of one; answers are held against what is known at the `moment`.
    """

    changes: pd.DataFrame
    kept: Kept | None
    end: int
    since: int
    moment: Moment


def _each(
    wanted: Sequence[Registered],
    history: History,
    frame: pd.DataFrame,
    emitted: _Changes,
) -> Iterator[Verified]:
    """What is found of each query. Places of all changes are looked at together, for that asks all fixes."""
    changes = emitted.changes[
        emitted.changes["query"].isin([one.name for one in wanted])
    ]
    lately = changes[changes["position"] >= emitted.since]
    wrong = misplaced(lately, frame)
    own = dict(iter(changes.groupby("query", sort=False)))
    for query in wanted:
        if query.is_seeded:
            yield _not_verified(query, emitted.end, _SEEDED)
            continue
        mine = replace(emitted, changes=own.get(query.name, changes[:0]))
        one = _guarded(query, history, mine)
        yield replace(one, misplaced=int(wrong.get(query.name, 0)))


def _guarded(query: Registered, history: History, emitted: _Changes) -> Verified:
    """As `_verified`; what a query raises is said of this query, as engines say it."""
    try:
        return _verified(query, history, emitted)
    except (MemoryError, TransientError, StorageError):
        raise  # no fault of the query
    except Exception as error:  # noqa: BLE001 - what is evaluated are the words of users
        said = (str(error) or type(error).__name__).splitlines()[0]
        why = f"it cannot be evaluated: {said}"
        return replace(_not_verified(query, emitted.end, why), failed=True)


def _not_verified(query: Registered, end: int, why: str) -> Verified:
    return Verified(
        query=query.name,
        position=end,
        members=None,
        missing=0,
        extra=0,
        checked=False,
        unchecked=why,
    )


def _reached(home: Home, stream: StreamSettings) -> int:
    """The place after the last row that both `changes` and `positions` have."""
    engine = tables.committed(home.table("changes", stream.name), "engine")
    archive = tables.committed(
        home.table("positions", stream.name), f"archive-{stream.name}"
    )
    if (engine is None or archive is None) and _is_run(home, stream):
        raise TransientError(
            f"stream {stream.name!r} is not archived yet",
            hint=f"try again in {EVERY_S:g} s",
        )
    if engine is None or archive is None:
        raise QueryError(
            f"stream {stream.name!r} has nothing to verify yet",
            hint=f"`fairway run {stream.name}` first",
        )
    return min(engine + 1, position_of(archive + 1, 0))


def _is_run(home: Home, stream: StreamSettings) -> bool:
    """Whether an engine lives, which will archive what it has read."""
    folder = home.stream(stream.name)
    return find(folder, now_us=time.time_ns() // 1000) is not None


def _verified(query: Registered, history: History, emitted: _Changes) -> Verified:
    emitted = replace(emitted, changes=emitted.changes.sort_values(["position", "seq"]))
    plan = query.plan
    if plan.tells_events:
        return _verified_events(query, history, emitted)
    last = _last_changes(emitted.changes)
    frame, aggregate = plan.frame, _aggregate_of(plan)
    if (
        plan.outer is None
        and frame is not None
        and aggregate is not None
        and aggregate.function == "avgspd"
        and not history.times.space.is_flat
    ):
        found = counted(query, history, emitted.moment)
        speeds = _speeds_in_doubt(query, found, history)
        return _verified_speeds(query, speeds, last, emitted)
    return _verified_members(query, history, last, emitted)


def _verified_members(
    query: Registered, history: History, last: pd.DataFrame, emitted: _Changes
) -> Verified:
    """The answer that changes fold to beside the one that brute force finds: members, or groups with their values."""
    aggregate, other = _aggregate_of(query.plan), 0
    folded = _members(last[last["sign"] > 0], aggregate)
    sure, maybe = expected_answer(query, history, emitted.moment)
    extra = 0 if maybe is None else len(folded - maybe)
    if query.plan.valid_until:
        other = _other_times(query, history, emitted.moment, emitted.changes)
    gone = _unknown(query, history, sure - folded, last, emitted.kept)
    unchecked = _in_words(gone, "member" if aggregate is None else "group")
    return Verified(
        query=query.name,
        position=emitted.end,
        members=len(folded if maybe is None else maybe),
        missing=len(sure - folded) - gone + other,
        extra=extra + other,
        checked=maybe is not None,
        unchecked=unchecked if maybe is not None else _IN_DOUBT,
    )


def _last_changes(changes: pd.DataFrame) -> pd.DataFrame:
    """The last change of each member, in their order."""
    return (
        changes[changes["sign"] != 0]
        .assign(partner=changes["partner"].fillna(""))
        .groupby(["object", "partner"])
        .tail(1)
    )


def _members(held: pd.DataFrame, aggregate: Aggregate | None) -> Answer:
    """Members and partners, or groups and values as texts."""
    if aggregate is None:
        return set(zip(held["object"], held["partner"], strict=True))
    values = held["value"].map(value_text)
    if aggregate.function == "several":
        values = held["fields"].map(json.loads).map(value_text)
    return set(zip(held["object"], values, strict=True))


def _aggregate_of(plan: Plan) -> Aggregate | None:
    """The aggregate whose values a query emits; None where it emits members, or rows of them."""
    if plan.outer is not None and plan.outer.aggregate is not None:
        return plan.outer.aggregate
    return plan.aggregate


def _unknown(
    query: Registered,
    history: History,
    absent: Answer,
    last: pd.DataFrame,
    kept: Kept | None,
) -> int:
    """How many of those that are absent from a fold may have come in days of which the changes were deleted.

    They were there before, or may have been, and no change that is left speaks of them.
    """
    if kept is None or not absent:
        return 0
    before = answer_before(query, history, kept.position, kept.day_us)
    by = 2 if _aggregate_of(query.plan) is None else 1
    columns = ["object", "partner"][:by]
    known = set(last[columns].itertuples(index=False, name=None))
    rest = [one for one in absent if before is None or one in before]
    return sum(one[:by] not in known for one in rest)


def _in_words(count: int, what: str) -> str:
    """What could not be checked; nothing of none."""
    if not count:
        return ""
    ending = "s" if count > 1 else ""
    return f"{count} {what}{ending} of days of which the changes were deleted"


_SAME_S = 0.002
"""A member is told anew where it is another time by more than half of it."""
_SHARE = 1e-6  # of the time that is left


def _other_times(
    query: Registered, history: History, moment: Moment, changes: pd.DataFrame
) -> int:
    """How many members were told last that they stay until another time than they do (VALID UNTIL, SPEC G8).

        told + at 10: until 14      reports at 12: until 14      reports at 13: until 15, and is told so
                                    the same, so nothing is told

    What was told last is right if it is the time that follows from the last report of the member, and of the object
    that the region goes with, or from when it came in, if that was later; when it came in is taken from what was told.
    Reports of the tick that was open when the query was registered are not told of, for some came before it: members
    that reported last then are passed over, and so are those in doubt.
    """
    told = changes[changes["sign"] >= 0].assign(partner=changes["partner"].fillna(""))
    told = told.groupby(["object", "partner"]).tail(1)
    told_us = told["event_ts"].dt.as_unit("us").astype(np.int64)
    names = zip(told["object"], told["partner"], strict=True)
    said = zip(told["value"].astype(float), told_us, strict=True)
    last = dict(zip(names, said, strict=True))
    plan, events = query.plan, history.events
    focal = focal_of(plan, history, judged_rows(query, history, moment))
    first_tick, wrong = history.tick_open_at(query.position), 0
    share = _SHARE if history.fixes.metric.is_flat else 2 * SCALED
    found = members_at(query, history, moment)
    for row, partner in zip(
        found.rows[found.sure].tolist(), found.partner[found.sure], strict=True
    ):
        key = history.fixes.ids[row], partner or ""
        if key not in last:
            continue
        reports = [row] if focal is None else [row, focal]
        is_early = events.tick[reports] <= first_tick
        if (is_early & (events.effect[reports] > query.position)).any():
            continue
        is_told = (events.due[reports] != LATER) & ~is_early
        told_s, at_us = last[key]
        at_us = max([at_us, *events.tick[reports][is_told].tolist()])
        should_s, left_s = stays_until(plan, history, row, focal, at_us)
        wrong += not np.isclose(
            told_s, should_s, rtol=0, atol=_SAME_S + share * left_s, equal_nan=True
        )
    return wrong


def _verified_events(
    query: Registered, history: History, emitted: _Changes
) -> Verified:
    """All events of a fence or of incidents, each at its row of the log, but for what is in doubt."""
    life, incident, kept = lived(query, history), query.plan.incident, emitted.kept
    start = emitted.since
    if incident is None:
        begins = [era.position for era in query.eras if era.is_kept]
        start = max(start, max(begins, default=query.position))
    mine = emitted.changes
    own = mine[(mine["query_version"] == query.version) & (mine["position"] >= start)]
    said = _emitted_events(own, incident)
    should = [
        _event_of(one, incident)
        for one in life.events
        if one.row >= start and query.eras[one.era].version == query.version
    ]
    there = [row for row in should if kept is None or kept.has(row[0], row[5])]
    expected = Counter(there)
    missing, extra = (
        sum(count for row, count in rows.items() if not life.is_doubtful(*row[:3]))
        for rows in (expected - said, said - expected)
    )
    gone = _in_words(len(should) - len(there), "event")
    unchecked = (_visits_in_doubt(life), gone)
    return Verified(
        query=query.name,
        position=emitted.end,
        members=len(life.inside),
        missing=missing,
        extra=extra,
        unchecked="; ".join(filter(None, unchecked)),
    )


Event = tuple[Any, ...]
"""Position, object, target, sign, cause, event time in microseconds, value, and of incidents the worst value."""


def _event_of(one: Emitted, incident: Incident | None) -> Event:
    """What must be emitted, to be compared with what was."""
    value = rounded(one.value)
    own = *one[:6], value
    return own if incident is None else (*own, _digits(one.worst))


def _emitted_events(mine: pd.DataFrame, incident: Incident | None) -> Counter[Event]:
    """Rows of `changes` in the same form."""
    columns = (mine[name].tolist() for name in _TOLD)
    event_us = mine["event_ts"].dt.as_unit("us").astype(np.int64).tolist()
    values = map(rounded, mine["value"].tolist())
    rows = zip(*columns, event_us, values, strict=True)
    if incident is None:
        return Counter(rows)
    worst = (_worst_said(fields, incident) for fields in mine["fields"].tolist())
    return Counter((*row, one) for row, one in zip(rows, worst, strict=True))


def _worst_said(fields: str, incident: Incident) -> float | None:
    """The worst value that was emitted."""
    if incident.worst is None:
        return None
    return _digits(json.loads(fields)[incident.worst.name])


def _digits(value: float | None) -> float | None:
    """To 9 digits: `speed_mps` is measured in two ways."""
    return None if value is None else float(f"{value:.9g}")


def rounded(value: float | None) -> float | None:
    """Seconds to the microsecond; NaN is none."""
    return None if value is None or np.isnan(value) else round(value, 6)


def _visits_in_doubt(life: Lived) -> str:
    """In words; nothing of none."""
    count = sum(len(spans) for spans in life.doubtful.values())
    what = (
        f"{count} visit{'s' * (count > 1)}, for a fix is too near to a border to tell"
    )
    return what if count else ""


_TOLD = ("position", "object", "partner", "sign", "cause")


def _speeds_in_doubt(
    query: Registered, found: Counted, history: History
) -> pd.DataFrame:
    """By object its average `speed`, NaN for none, and whether it is `sure`: none of its fixes is in doubt."""
    values = pd.Series(values_of(query, found, history), dtype=float)
    sure = pd.Series(found.sure).groupby(history.fixes.ids[found.rows]).all()
    sure = sure.reindex(values.index).astype(bool)
    return pd.DataFrame({"speed": values, "sure": sure})


def _verified_speeds(
    query: Registered, expected: pd.DataFrame, last: pd.DataFrame, emitted: _Changes
) -> Verified:
    """Average speeds on degrees: equal up to how exactly metres are measured, where no fix is in doubt."""
    held = last[last["sign"] > 0]
    count = len(expected)
    if emitted.kept is not None:
        expected = expected[expected.index.isin(last["object"])]
    values = held.set_index("object")["value"].reindex(expected.index)
    same = np.isclose(
        values, expected["speed"], rtol=2 * SCALED, atol=1e-9, equal_nan=True
    )
    present = expected.index.isin(held["object"])
    wrong = expected["sure"] & ~(same & present)
    strangers = int((~held["object"].isin(expected.index)).sum())
    return Verified(
        query=query.name,
        position=emitted.end,
        members=len(held),
        missing=int(wrong.sum()),
        extra=strangers + int((wrong & present).sum()),
        unchecked=_in_words(count - len(expected), "speed"),
    )


_PLACE = ["x", "y"]


def misplaced(changes: pd.DataFrame, events: pd.DataFrame) -> dict[str, int]:
    """How many changes of each query name another place than the object's last fix that counted, up to `fix_ts`.

        fixes of a (time: x)   10: 1   20: 5   30: 9
        a change of fix_ts 20 says 5   ->   right;   one of fix_ts 25 says 9   ->   wrong, it is 5

    A fix that took effect only after the change is not meant. Where `fix_ts` is null, no fix of its own caused the
    change: the last one that had taken effect by then is meant. Changes without a place are groups, or were told before
    places were stored; they are passed over.

    Args:
        changes: rows of the table `changes`.
        events: what `events_of` gives.

    Returns:
        By query; those that have none are left out.
    """
    told = changes[changes["x"].notna()]
    fixes = events[events["kind"] == FIX]
    has_fix = told["fix_ts"].notna()
    fix_us = told["fix_ts"][has_fix].dt.as_unit("us").astype(np.int64)
    by_time = _beside(told[has_fix].assign(key=fix_us), fixes, "event")
    is_later = by_time["effect"] > by_time["position"]
    others = pd.concat([told[~has_fix][_ASKED], by_time[is_later][_ASKED]])
    by_place = _beside(others.assign(key=others["position"]), fixes, "effect")
    both = pd.concat([by_time[~is_later], by_place])
    same = (both["x"] == both["x_of_fix"]) & (both["y"] == both["y_of_fix"])
    return dict(Counter(both["query"][~same]))


_ASKED = ["object", "query", "position", *_PLACE]


def _beside(told: pd.DataFrame, fixes: pd.DataFrame, by: str) -> pd.DataFrame:
    """Rows with the place and the effect of the last fix of their object that is not behind their key."""
    ordered = fixes.assign(key=fixes[by]).sort_values("key", kind="stable")
    return pd.merge_asof(
        told[["key", *_ASKED]]
        .astype({"key": np.int64})
        .sort_values("key", kind="stable"),
        ordered[["key", "object", "effect", *_PLACE]],
        on="key",
        by="object",
        suffixes=("", "_of_fix"),
    )
