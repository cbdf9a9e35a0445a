"""The joint stream of two, which the first query over both makes: its settings, and what does not go together."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_common.config.stream import StreamSettings
from st_common.config.streams import stream_of_table
from st_common.errors import ConfigError
from st_common.query.created_streams import FILE
from st_common.query.drafted import Draft
from st_common.query.lowering.two_streams import NAME, OBJECT, TwoStreams

if TYPE_CHECKING:
    from st_common.query.text import Statement

POSITION = "stream_position"
_OWN = {NAME: "string", OBJECT: "string", POSITION: "long"}
_ALIKE = ("crs", "silence_s", "tick_s", "position_filter")
"""Settings that decide answers and that both must have alike."""
_SHORTEST = ("log_days", "positions_days", "changes_days")


def with_joint(draft: Draft, statement: "Statement") -> "Statement | None":
    """A statement whose joint stream there is, where it is over two; None: it was said why there can be none.

    FROM BEGINNING is where a joint stream begins that the statement makes: nothing is left to be found out.
    """
    two = statement.two
    if two is None:
        return statement
    count, is_new = len(draft.problems), two.joint not in draft.streams
    if is_new:
        _declare(draft, statement, two)
    else:
        _check_meant(draft, statement, two)
    if len(draft.problems) > count:
        return None
    is_new = is_new or two.joint in draft.joints
    return replace(statement, beginning=None) if is_new else statement


def _declare(draft: Draft, statement: "Statement", two: TwoStreams) -> None:
    name = two.joint
    if statement.op == "ask":
        message = f"streams {two.first!r} and {two.second!r} have not been joined yet"
        hint = "REGISTER a query over both: it sees their last fixes, and what comes"
        draft.problems.append(statement.problem(message, at="stream", hint=hint))
        return
    since = statement.beginning
    if since is not None and since.since is not None:
        message = f"streams {two.first!r} and {two.second!r} have not been joined yet"
        hint = "FROM BEGINNING, or register it without FROM"
        draft.problems.append(statement.problem(message, at="stream", hint=hint))
        return
    begins = {
        one: 0 if since is not None else draft.log_end(one)
        for one in (two.first, two.second)
    }
    try:
        table = joint_table(name, [draft.streams[one] for one in begins], begins)
        draft.streams[name] = stream_of_table(name, table, Path(FILE))
    except ConfigError as error:
        message = error.message.removeprefix(f"{FILE}: stream {name!r}: ")
        problem = statement.problem(message, at="stream", hint=error.hint)
        draft.problems.append(problem)
    else:
        draft.joints[name] = table


def create_joint(draft: Draft, statement: "Statement") -> None:
    """Makes the joint stream of a query that is registered, where there is none."""
    name = statement.plan.stream if statement.plan is not None else ""
    if name in draft.joints and name not in draft.tables:
        draft.tables[name] = draft.joints[name]
        draft.streams_created.append(name)


def _check_meant(draft: Draft, statement: "Statement", two: TwoStreams) -> None:
    if draft.streams[two.joint].joined.keys() != {two.first, two.second}:
        message = f"there is a stream {two.joint!r}, which joins no {two.first} and {two.second}"
        hint = "give it another name: the joint stream of the two is called so"
        draft.problems.append(statement.problem(message, at="stream", hint=hint))


def joint_table(
    name: str, streams: list[StreamSettings], begins: Mapping[str, int]
) -> dict[str, Any]:
    """The settings of the joint stream of two, in the terms of a table.

    Lateness and what is ahead of its arrival were judged in each stream by its own settings; how far objects come, and
    how much windows keep, is the larger of both; how long anything is kept is the shorter.

    Args:
        name: of the joint stream.
        streams: the two.
        begins: the segment from which on all fixes of each count.

    Raises:
        ConfigError: they do not go together.
    """
    first, second = streams
    _check_together(name, first, second)
    table = {
        "format": "parquet",
        "joins": [
            f"{one}@{segment}" if segment else one for one, segment in begins.items()
        ],
        "columns": {
            "object": [NAME, OBJECT],
            "event_ts": "event_ts",
            "x": "x",
            "y": "y",
            "gone": "gone",
        },
        "time_unit": "us",
        "attributes": _attributes(first, second),
        "max_ahead_s": "off",
        "max_jump_s": "off",
        "drop_null_island": False,
        "running": first.running and second.running,
        "window_rows": max(first.window_rows, second.window_rows),
        "cache_share": first.cache_share,
        "crs": first.crs,
        "tick_s": first.tick_s,
        "group": first.group,
    }
    if first.silence_s is not None:
        table["silence_s"] = first.silence_s
    speeds = [one.max_speed_mps for one in streams]
    if None not in speeds:
        table["max_speed_mps"] = max(filter(None, speeds))
    if first.position_filter is not None:
        said = asdict(first.position_filter)
        table["position_filter"] = {k: v for k, v in said.items() if v is not None}
    for key in _SHORTEST:
        days = [v for one in streams if (v := getattr(one, key)) is not None]
        table |= {key: min(days)} if days else {}
    return table


def _check_together(name: str, first: StreamSettings, second: StreamSettings) -> None:
    for one in (first, second):
        if one.joins:
            raise ConfigError(
                f"stream {one.name!r} joins two streams already, and a query is over two",
                hint="CREATE STREAM makes a stream of what a query over both tells",
            )
        if not one.moving:
            raise ConfigError(
                f"stream {one.name!r} has moving = false",
                hint="a query over two streams is evaluated at ticks: moving = true",
            )
        if one.columns.extent:
            raise ConfigError(
                f"elements of stream {one.name!r} have an extent",
                hint="two streams are joined by places; a stream of middles has them",
            )
        taken = [each for each in one.attributes if each.casefold() in _OWN]
        if taken:
            raise ConfigError(
                f"stream {one.name!r} has an attribute {taken[0]!r}, which {name} says itself",
                hint="call it otherwise by columns.attributes in its settings",
            )
    for key in _ALIKE:
        values = getattr(first, key), getattr(second, key)
        if values[0] != values[1]:
            said = " and ".join("off" if v is None else repr(v) for v in values)
            raise ConfigError(
                f"streams {first.name!r} and {second.name!r} differ in {key}: {said}",
                hint=f"a query over both needs one {key}: set both alike",
            )


def _attributes(first: StreamSettings, second: StreamSettings) -> dict[str, str]:
    """The attributes of both; one that both have must be of one type and one unit."""
    declared: dict[str, str] = {}
    owners: dict[str, tuple[str, str]] = {}
    for one in (first, second):
        for attribute, kind in one.attributes.items():
            type_ = f"{kind} {one.units.get(attribute, '')}".strip()
            before = owners.setdefault(attribute.casefold(), (attribute, type_))
            if before != (attribute, type_):
                raise ConfigError(
                    f"attribute {attribute!r} of stream {second.name!r} is {type_!r}, "
                    f"and {before[0]!r} of {first.name!r} is {before[1]!r}",
                    hint="call one of them otherwise by columns.attributes in its settings",
                )
            declared[attribute] = type_
    return declared | _OWN
