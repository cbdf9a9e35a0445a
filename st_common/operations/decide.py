"""What to do with one stream: a pure function of what a look saw and what the looks before it left in memory."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Self

from st_common.config.operations import Limits
from st_common.errors import FairwayError
from st_common.operations.health import (
    Health,
    Observation,
    Progress,
    judge,
    patience_s,
    phase_of,
    remember,
)
from st_common.operations.process import start_of
from st_common.operations.status import Exit, Phase, StreamStatus, ended_well, is_newer

BAD_CONFIG = "bad_config"
CRASH_LOOP = "crash_loop"
_MOST_DOUBLED = (
    16  # starts of a crash loop that are remembered: the pause is the longest by then
)
_GOOD = ("ok", "stopped")
_TOLD = (
    "stuck",
    "unseen",
    BAD_CONFIG,
    CRASH_LOOP,
)  # it was asked to end, or cannot be started, or is tried again: dead is no news


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
        starts_us: when it started the stream within the breaker's window, us since 1970, ascending; of a crash loop
            the newest of all.
        tripped: why it starts the stream no more (`bad_config`) or seldom (`crash_loop`); "": neither.
        why: the error that the engine ended with when it tripped, or why the last look could not see to it.
        basis: what the last start depended on, see `Observation.basis`.
        condition: what was alerted last.
        progress: how far the stream was at the last look.
    """

    starts_us: tuple[int, ...] = ()
    tripped: str = ""
    why: str = ""
    basis: str = ""
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
    restarted when it is stuck, each time after a longer pause. Too many starts in a window are a crash loop, whose
    pauses go on growing. An engine that ended because its settings are wrong is not started again. Both are over when
    what a start depends on has changed, or an engine works. An alert is given only when the condition changes.

        starts so far in the window            0   1   2    3    4    5: `crash_loop`   6     7      8
        seconds from the last one to another   0   0   10   20   40   300               600   1200   2400

    Args:
        seen: what a look saw.
        memory: what the decision before this one left.
        now_us: now, us since 1970.
        limits: how patient to be.
    """
    progress = remember(seen, memory.progress, now_us=now_us)
    health = judge(seen, progress, now_us=now_us, limits=limits)
    told_before = (memory.condition, memory.why)
    memory = replace(memory, progress=progress)
    if not seen.wanted:
        # A stream that shall not run is forgiven: wanted again, it starts as if nothing had been.
        memory = replace(memory, starts_us=(), tripped="")
    else:
        memory = _forgiven(seen, memory, health, now_us=now_us, limits=limits)
        memory = _trip(seen, memory, health, now_us=now_us, limits=limits)
    actions, memory = _act(seen, memory, health, now_us=now_us, limits=limits)
    told = _alert(seen, memory, health, told_before=told_before)
    memory = replace(memory, condition=told[1])
    return Decision(health=health, actions=(*told[0], *actions), memory=memory)


def _act(
    seen: Observation, memory: Memory, health: Health, *, now_us: int, limits: Limits
) -> tuple[list[Action], Memory]:
    if seen.running is not None:
        return _act_on_living(seen, health, now_us=now_us, limits=limits), memory
    held = seen.marker is not None and not seen.marker.by_supervisor
    clear = (
        [Action(stream=seen.stream, kind=ActionKind.CLEAR, reason="it has stopped")]
        if _asked(seen)
        else []
    )
    is_hopeless = held or memory.tripped == BAD_CONFIG
    if not seen.wanted or is_hopeless or health is not Health.DEAD:
        return clear, memory
    if now_us < _next_start_us(memory, limits):
        return clear, memory
    kind = ActionKind.RESTART if memory.starts_us else ActionKind.START
    start = Action(stream=seen.stream, kind=kind, reason=_why_dead(seen))
    most = limits.breaker_starts + _MOST_DOUBLED
    starts_us = (*memory.starts_us, now_us)[-most:]
    return [*clear, start], replace(memory, starts_us=starts_us, basis=seen.basis)


def _act_on_living(
    seen: Observation, health: Health, *, now_us: int, limits: Limits
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
    reason = _why_stop(seen, health)
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


def _why_stop(seen: Observation, health: Health) -> str:
    if not seen.wanted:
        return "it shall not run"
    if health is Health.STUCK:
        return f"stuck at segment {seen.next_segment}, {seen.waiting} wait"
    return ""


def _trip(
    seen: Observation, memory: Memory, health: Health, *, now_us: int, limits: Limits
) -> Memory:
    """Drops starts that are too old to count, and says when there is no hope in another one, or little."""
    if seen.running is not None or memory.tripped == BAD_CONFIG:
        return memory
    if not memory.tripped:
        since_us = now_us - limits.breaker_window_s * 1e6
        recent = tuple(start for start in memory.starts_us if start > since_us)
        memory = replace(memory, starts_us=recent)
    recent = memory.starts_us
    if health is not Health.DEAD or not recent:
        return memory
    ended = _ended_since(seen, recent[-1])
    why = ended.message if ended is not None else ""
    if ended is not None and ended.code == FairwayError.exit_code:
        return replace(memory, tripped=BAD_CONFIG, why=why)
    if len(recent) >= limits.breaker_starts:
        return replace(memory, tripped=CRASH_LOOP, why=why)
    return memory


def _forgiven(
    seen: Observation, memory: Memory, health: Health, *, now_us: int, limits: Limits
) -> Memory:
    """Forgets why a stream was given up when its settings or the installation changed, or an engine works, or did."""
    if not memory.tripped:
        return memory
    is_over = seen.basis != memory.basis
    if seen.running is not None:
        age_s = (now_us - start_of(seen.running.owner)) / 1e6
        works = health in (Health.IDLE, Health.HEALTHY, Health.SLOW)
        is_over |= works and age_s >= limits.start_grace_s
    elif memory.starts_us:
        ended = _ended_since(seen, memory.starts_us[-1])
        is_over |= ended is not None and ended.code == 0
    return replace(memory, starts_us=(), tripped="") if is_over else memory


def _ended_since(seen: Observation, start_us: int) -> Exit | None:
    """How an engine ended that was started at or after `start_us` and ended by itself; None when killed."""
    # Two seconds of grace: start times shift a little when the clock is corrected.
    if seen.ended is None or seen.ended.owner.started_s * 1e6 < start_us - 2e6:
        return None
    return seen.ended


def _next_start_us(memory: Memory, limits: Limits) -> int:
    """When the next start is allowed, us since 1970: at once for the first two, then after pauses that double."""
    again = len(memory.starts_us) - 1
    if again < 1 and memory.tripped != CRASH_LOOP:
        return 0
    if memory.tripped == CRASH_LOOP:
        beyond = max(len(memory.starts_us) - limits.breaker_starts, 0)
        pause_s = min(limits.back_off_max_s * 2**beyond, limits.crash_pause_max_s)
    else:
        pause_s = min(limits.back_off_s * 2 ** (again - 1), limits.back_off_max_s)
    return memory.starts_us[-1] + int(pause_s * 1e6)


def _alert(
    seen: Observation,
    memory: Memory,
    health: Health,
    *,
    told_before: tuple[str, str],
) -> tuple[list[Action], str]:
    """The alert for a changed condition, if it changed, and the condition.

    While an engine starts, and while a supervisor's stop is under way, the condition stays what it was: so a stream
    that dies again and again gives one alert and not one for each death, and one that was stuck no second one when it
    ends, as it was asked to. One that is given up again with another error is told again.
    """
    condition, level, reason = _condition(seen, memory, health)
    is_same = (condition, memory.why) == told_before
    if is_same or (condition in _GOOD and memory.condition in _GOOD):
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
        return memory.tripped, "error", _why_tripped(seen, memory)
    if seen.marker is not None and not seen.marker.by_supervisor:
        return "stopped", "info", "a stop marker holds it"
    return _condition_by_health(seen, memory, health)


def _condition_by_health(
    seen: Observation, memory: Memory, health: Health
) -> tuple[str, str, str]:
    if health is Health.DEAD and memory.condition in _TOLD:
        return memory.condition, "error", ""
    if health is Health.DEAD:
        is_orderly = memory.condition == "stopped" or ended_well(
            seen.status, seen.ended
        )
        if is_orderly:
            return "ok", "info", "it starts"
        return "dead", "error", _why_dead(seen)
    if health is Health.STUCK:
        return "stuck", "error", f"at segment {seen.next_segment}, {seen.waiting} wait"
    if health is Health.SLOW:
        return "slow", "warning", f"{seen.waiting} segments wait, more at each look"
    if health is Health.STARTING or _asked(seen):
        return memory.condition, "info", ""
    return "ok", "info", str(health)


def _asked(seen: Observation) -> bool:
    return seen.marker is not None and seen.marker.by_supervisor


def _why_tripped(seen: Observation, memory: Memory) -> str:
    """What was wrong, and what to do about it."""
    name = seen.stream.replace("delivery ", "deliveries/")
    retry = f"`fairway streams retry {name}`"
    if memory.tripped == BAD_CONFIG:
        return (
            f"{memory.why}; tried again when settings or packages change, or by {retry}"
        )
    error = f": {memory.why}" if memory.why else ""
    count = len(memory.starts_us)
    return f"{count} starts did not help{error}; tried again after longer and longer pauses, or by {retry}"


def _is_of(ended: Exit, status: StreamStatus | None) -> bool:
    return status is not None and ended.owner.pid == status.pid


def _why_dead(seen: Observation) -> str:
    ended, status = seen.ended, seen.status
    if ended is not None and (is_newer(ended, status) or _is_of(ended, status)):
        said = f": {ended.message}" if ended.message else ""
        return f"its process ended with code {ended.code}{said}"
    if seen.status is None:
        return "it has not run yet"
    return f"its process {seen.status.pid} is gone"
