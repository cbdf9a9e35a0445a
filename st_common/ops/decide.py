"""What to do with one stream: a pure function of what a look saw and what the looks before it left in memory."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Self

from st_common.errors import FairwayError
from st_common.ops.health import (
    Health,
    Limits,
    Observation,
    Progress,
    judge,
    patience_s,
    phase_of,
    remember,
)
from st_common.ops.status import Phase

_BAD_CONFIG = FairwayError.exit_code
_GOOD = ("ok", "stopped")
_TOLD = (
    "stuck",
    "unseen",
)  # it was asked to end, or cannot be started: dead is no news


class ActionKind(StrEnum):
    """What the supervisor can do."""

    START = "start"
    RESTART = "restart"
    STOP = "stop"
    KILL = "kill"
    CLEAR = "clear"
    ALERT = "alert"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One thing that is to be done for one stream.

    Attributes:
        stream: the stream, or `delivery NAME`.
        kind: what.
        reason: why, for people; the text of an alert.
        level: of an alert: `error`, `warning` or `info`.
    """

    stream: str
    kind: ActionKind
    reason: str
    level: str = "info"


def by_kind(actions: Iterable[Action]) -> dict[str, list[dict[str, str]]]:
    """Actions as JSON values: `alerts` with stream, level and text, and apart from them what was done, `actions`.

    Args:
        actions: in the order in which they are listed.
    """
    alerts, done = [], []
    for action in actions:
        if action.kind is ActionKind.ALERT:
            alerts.append(
                {"stream": action.stream, "level": action.level, "text": action.reason}
            )
        else:
            done.append(
                {
                    "stream": action.stream,
                    "kind": action.kind.value,
                    "reason": action.reason,
                }
            )
    return {"actions": done, "alerts": alerts}


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What the supervisor keeps of a stream between its looks.

    Attributes:
        starts_us: when it started the stream within the breaker's window, us since 1970, ascending.
        tripped: why it starts the stream no more, `bad_config` or `crash_loop`; "": it does.
        condition: what was alerted last.
        progress: how far the stream was at the last look.
    """

    starts_us: tuple[int, ...] = ()
    tripped: str = ""
    condition: str = "stopped"
    progress: Progress = field(default_factory=Progress)

    def to_json(self) -> dict[str, Any]:
        """A JSON object from which `from_json` makes the same memory."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any] | None) -> Self:
        """The memory in a record; an empty one when there is no record or it cannot be read."""
        try:
            values = dict(record or {})
            values["starts_us"] = tuple(values.get("starts_us", ()))
            values["progress"] = Progress(**values.get("progress", {}))
            return cls(**values)
        except TypeError:
            return cls()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a look leads to.

    Attributes:
        health: how the stream is.
        actions: what to do, in this order.
        memory: what to remember until the next look.
    """

    health: Health
    actions: tuple[Action, ...]
    memory: Memory


def decide(
    seen: Observation, memory: Memory, *, now_us: int, limits: Limits
) -> Decision:
    """Compares what should be with what is; a pure function, so that every case can be tried.

    A stream that is not wanted, or that a person's marker holds, is asked to stop and killed after a grace time, if it
    was launched from here; an engine that a person started is left alone. A wanted one is started when it is dead and
    restarted when it is stuck, each time after a longer pause; too many starts in a window, or an engine that ended
    because its settings are wrong, stop that until a person looks. An alert is given only when the condition changes.

        starts so far in the window            0   1   2    3    4    5
        seconds from the last one to another   0   0   10   20   40   none: `crash_loop`

    Args:
        seen: what a look saw.
        memory: what the decision before this one left.
        now_us: now, us since 1970.
        limits: how patient to be.
    """
    progress = remember(seen, memory.progress, now_us=now_us)
    health = judge(seen, progress, now_us=now_us, limits=limits)
    memory = replace(memory, progress=progress)
    if not seen.wanted:
        # A stream that shall not run is forgiven: wanted again, it starts as if nothing had been.
        memory = replace(memory, starts_us=(), tripped="")
    elif seen.running is None and not memory.tripped:
        memory = _trip(seen, memory, health, now_us=now_us, limits=limits)
    actions, memory = _act(seen, memory, health, now_us=now_us, limits=limits)
    alert = _alert(seen, memory, health)
    memory = replace(memory, condition=alert[1])
    return Decision(health=health, actions=(*alert[0], *actions), memory=memory)


def _act(
    seen: Observation, memory: Memory, health: Health, *, now_us: int, limits: Limits
) -> tuple[list[Action], Memory]:
    if seen.running is not None:
        return _act_on_living(
            seen, memory, health, now_us=now_us, limits=limits
        ), memory
    held = seen.marker is not None and not seen.marker.by_supervisor
    clear = (
        [Action(stream=seen.stream, kind=ActionKind.CLEAR, reason="it has stopped")]
        if _asked(seen)
        else []
    )
    if not seen.wanted or held or memory.tripped or health is not Health.DEAD:
        return clear, memory
    if now_us < _next_start_us(memory, limits):
        return clear, memory
    kind = ActionKind.RESTART if memory.starts_us else ActionKind.START
    start = Action(stream=seen.stream, kind=kind, reason=_why_dead(seen))
    return [*clear, start], replace(memory, starts_us=(*memory.starts_us, now_us))


def _act_on_living(
    seen: Observation, memory: Memory, health: Health, *, now_us: int, limits: Limits
) -> list[Action]:
    # An engine that a person started is left to that person.
    if seen.running is None or not seen.running.launched:
        return []
    if seen.marker is not None:
        grace_s = _stop_grace_s(seen, health, now_us=now_us, limits=limits)
        if now_us - seen.marker.since_us > grace_s * 1e6:
            return [
                Action(
                    stream=seen.stream,
                    kind=ActionKind.KILL,
                    reason=f"not stopped in {grace_s:g} s",
                )
            ]
        return []
    reason = _why_stop(seen, memory, health)
    return (
        [Action(stream=seen.stream, kind=ActionKind.STOP, reason=reason)]
        if reason
        else []
    )


def _stop_grace_s(
    seen: Observation, health: Health, *, now_us: int, limits: Limits
) -> float:
    """For how long a process may go on that was asked to stop: it ends between batches, and a killed one is lost."""
    phase = phase_of(seen, now_us=now_us, limits=limits)
    if health is Health.STUCK or phase in (None, Phase.WAITING):
        return limits.stop_grace_s
    return max(limits.stop_grace_s, patience_s(seen, now_us=now_us, limits=limits))


def _why_stop(seen: Observation, memory: Memory, health: Health) -> str:
    if not seen.wanted:
        return "it shall not run"
    if health is Health.STUCK:
        return f"stuck at segment {seen.next_segment}, {seen.waiting} wait"
    return memory.tripped and "it was given up"


def _trip(
    seen: Observation, memory: Memory, health: Health, *, now_us: int, limits: Limits
) -> Memory:
    """Drops starts that are too old to count, and gives the stream up when there is no hope in another one."""
    window_us = int(limits.breaker_window_s * 1e6)
    recent = tuple(start for start in memory.starts_us if now_us - start < window_us)
    tripped = ""
    if (
        health is Health.DEAD
        and recent
        and _ended_since(seen, recent[-1]) == _BAD_CONFIG
    ):
        tripped = "bad_config"
    elif health is Health.DEAD and len(recent) >= limits.breaker_starts:
        tripped = "crash_loop"
    return replace(memory, starts_us=recent, tripped=tripped)


def _ended_since(seen: Observation, start_us: int) -> int | None:
    """The exit code of an engine that was started at or after `start_us` and ended by itself; None when killed."""
    # Two seconds of grace: start times shift a little when the clock is corrected.
    if seen.ended is None or seen.ended.owner.started_s * 1e6 < start_us - 2e6:
        return None
    return seen.ended.code


def _next_start_us(memory: Memory, limits: Limits) -> int:
    """When the next start is allowed: at once for the first two in a window, then after pauses that double."""
    again = len(memory.starts_us) - 1
    if again < 1:
        return 0
    pause_s = min(limits.back_off_s * 2 ** (again - 1), limits.back_off_max_s)
    return memory.starts_us[-1] + int(pause_s * 1e6)


def _alert(
    seen: Observation, memory: Memory, health: Health
) -> tuple[list[Action], str]:
    """The alert for a changed condition, if it changed, and the condition.

    While an engine starts, and while a supervisor's stop is under way, the condition stays what it was: so a stream
    that dies again and again gives one alert and not one for each death, and one that was stuck no second one when it
    ends, as it was asked to.
    """
    condition, level, reason = _condition(seen, memory, health)
    if condition == memory.condition or (
        condition in _GOOD and memory.condition in _GOOD
    ):
        return [], condition
    if condition in _GOOD:
        reason = f"no longer {memory.condition}: {reason}"
    alert = Action(
        stream=seen.stream,
        kind=ActionKind.ALERT,
        reason=f"{condition}: {reason}",
        level=level,
    )
    return [alert], condition


def _condition(
    seen: Observation, memory: Memory, health: Health
) -> tuple[str, str, str]:
    if not seen.wanted:
        return "stopped", "info", "it shall not run"
    if memory.tripped:
        message = seen.ended.message if seen.ended else ""
        return (
            memory.tripped,
            "error",
            message or f"{len(memory.starts_us)} starts did not help",
        )
    if seen.marker is not None and not seen.marker.by_supervisor:
        return "stopped", "info", "a stop marker holds it"
    return _condition_by_health(seen, memory, health)


def _condition_by_health(
    seen: Observation, memory: Memory, health: Health
) -> tuple[str, str, str]:
    if health is Health.DEAD and memory.condition in _TOLD:
        return memory.condition, "error", ""
    if health is Health.DEAD:
        first = memory.condition == "stopped"
        return (
            ("ok", "info", "it starts") if first else ("dead", "error", _why_dead(seen))
        )
    if health is Health.STUCK:
        return "stuck", "error", f"at segment {seen.next_segment}, {seen.waiting} wait"
    if health is Health.SLOW:
        return "slow", "warning", f"{seen.waiting} segments wait, more at each look"
    if health is Health.STARTING or _asked(seen):
        return memory.condition, "info", ""
    return "ok", "info", str(health)


def _asked(seen: Observation) -> bool:
    return seen.marker is not None and seen.marker.by_supervisor


def _why_dead(seen: Observation) -> str:
    if seen.status is None:
        return "it has not run yet"
    if seen.ended is not None and seen.ended.owner.pid == seen.status.pid:
        return f"its process ended with code {seen.ended.code}: {seen.ended.message}".rstrip(
            ": "
        )
    return f"its process {seen.status.pid} is gone"
