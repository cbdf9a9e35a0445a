"""Decisions as a pure function: what was seen, what follows."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from st_common.config.home import TOPOLOGY_FILE
from st_common.config.operations import Limits
from st_common.controls.rows import Clock, Register
from st_common.controls.writing import to_bytes
from st_common.operations.decide import ActionKind, Decision, Memory, decide
from st_common.operations.health import Health, Observation, observe
from st_common.operations.launcher import Running
from st_common.operations.process import Owner
from st_common.operations.records import write_record
from st_common.operations.status import (
    Exit,
    Phase,
    StreamStatus,
    write_status,
)
from st_common.operations.stop import StopMarker
from st_common.position import position_of
from tests.kit.log_writer import bare_log

S = 1_000_000
START = 1_000_000 * S
LIMITS = Limits()
ENGINE = Owner(host="here", pid=41, started_s=START / S)


def status(segment: int, *, beat_s: float = 1, state: str = "running") -> StreamStatus:
    place = position_of(segment, 0)
    return StreamStatus(
        state=state,
        beat_ts=START + int(beat_s * S),
        position=place,
        end_position=place,
        pid=41,
    )


BASE = Observation(
    stream="taxis",
    wanted=True,
    running=Running(owner=ENGINE, launched=True),
    status=status(5),
    marker=None,
    ended=None,
    next_segment=5,
    waiting=0,
    waiting_since_us=None,
)
DEAD = replace(BASE, running=None)
RUNNING = Memory(condition="ok", starts_us=(START,))


def at(seen: Observation, memory: Memory, seconds: float) -> Decision:
    return decide(seen, memory, now_us=START + int(seconds * S), limits=LIMITS)


def kinds(decision: Decision) -> list[str]:
    return [action.kind.value for action in decision.actions]


def test_a_wanted_stream_that_never_ran_is_started_without_an_alert() -> None:
    decision = at(replace(DEAD, status=None), Memory(), 0)
    assert kinds(decision) == ["start"]
    assert decision.memory.starts_us == (START,)


def test_a_stream_that_is_not_wanted_and_does_not_run_needs_nothing() -> None:
    assert kinds(at(replace(DEAD, wanted=False), Memory(), 0)) == []


def test_a_dead_stream_is_restarted_and_alerted_once() -> None:
    first = at(DEAD, RUNNING, 400)
    assert kinds(first) == ["alert", "restart"]
    again = at(DEAD, first.memory, 460)
    assert kinds(again) == ["restart"], "still dead: tried again, told once"
    well = at(BASE, again.memory, 520)
    assert kinds(well) == ["alert"]
    assert well.actions[0].level == "info"
    assert kinds(at(BASE, well.memory, 580)) == []


def test_pauses_between_starts_double() -> None:
    limits = replace(LIMITS, breaker_starts=99)
    memory, starts = Memory(condition="ok"), []
    for second in range(2000):
        decision = decide(DEAD, memory, now_us=START + second * S, limits=limits)
        memory = decision.memory
        if {"start", "restart"} & set(kinds(decision)):
            starts.append(second)
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    assert gaps[:7] == [1, 10, 20, 40, 80, 160, 300]


def test_a_crash_loop_gives_one_error_and_pauses_that_go_on_growing() -> None:
    memory, alerts, starts = RUNNING, [], []
    for second in range(60, 6 * 3600, 60):
        decision = at(DEAD, memory, second)
        memory = decision.memory
        alerts += [one.reason for one in decision.actions if one.kind == "alert"]
        starts += [second] if "restart" in kinds(decision) else []
    assert [alert.split(":")[0] for alert in alerts] == ["dead", "crash_loop"]
    assert "`fairway streams retry taxis`" in alerts[1]
    assert (memory.tripped, memory.condition) == ("crash_loop", "crash_loop")
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    assert gaps[LIMITS.breaker_starts - 2 :][:6] == [300, 600, 1200, 2400, 3600, 3600]


def test_a_crash_loop_is_over_once_an_engine_has_worked_for_a_while() -> None:
    starts_us = tuple(START - n * S for n in range(LIMITS.breaker_starts))[::-1]
    looping = Memory(condition="crash_loop", tripped="crash_loop", starts_us=starts_us)
    young = at(BASE, looping, LIMITS.start_grace_s - 1)
    assert young.memory.tripped == "crash_loop"
    well = at(BASE, young.memory, LIMITS.start_grace_s + 1)
    assert (well.memory.tripped, well.memory.starts_us) == ("", ())
    assert [one.reason for one in well.actions] == ["ok: no longer crash_loop: idle"]


def test_a_crash_loop_is_over_when_a_person_ran_the_engine_to_an_orderly_end() -> None:
    looping = Memory(condition="crash_loop", tripped="crash_loop", starts_us=(START,))
    by_hand = replace(ENGINE, started_s=START / S + 50)
    well = replace(DEAD, ended=Exit(owner=by_hand, code=0, message=""))
    decision = at(well, looping, 60)
    assert (kinds(decision), decision.memory.tripped) == (["start"], "")
    failed = replace(DEAD, ended=Exit(owner=by_hand, code=1, message="no"))
    assert at(failed, looping, 60).memory.tripped == "crash_loop"


def test_old_crashes_do_not_count_towards_the_breaker() -> None:
    day = 86_400
    memory = Memory(condition="ok", starts_us=tuple(START + n * S for n in range(4)))
    decision = at(DEAD, memory, day)
    assert kinds(decision) == ["alert", "start"]
    assert decision.memory.starts_us == (START + day * S,)


def test_wrong_settings_are_not_tried_again() -> None:
    ended = Exit(
        owner=replace(ENGINE, started_s=START / S + 1),
        code=2,
        message="unknown key 'shard'",
    )
    decision = at(replace(DEAD, ended=ended), RUNNING, 60)
    assert kinds(decision) == ["alert"]
    assert "unknown key 'shard'" in decision.actions[0].reason
    assert decision.memory.tripped == "bad_config"
    off = at(replace(DEAD, ended=ended, wanted=False), decision.memory, 120)
    assert kinds(at(replace(DEAD, ended=ended), off.memory, 180)) == ["start"], (
        "off and on again is a fresh try"
    )


WRONG = Exit(
    owner=replace(ENGINE, started_s=START / S + 1), code=2, message="unknown key"
)


def test_wrong_settings_are_tried_once_more_when_what_a_start_depends_on_changed() -> (
    None
):
    first = at(replace(DEAD, status=None, basis="a"), Memory(), 0)
    given_up = at(replace(DEAD, ended=WRONG, basis="a"), first.memory, 60)
    assert kinds(given_up) == ["alert"]
    assert "`fairway streams retry taxis`" in given_up.actions[0].reason
    same = at(replace(DEAD, ended=WRONG, basis="a"), given_up.memory, 120)
    assert kinds(same) == []
    mended = at(replace(DEAD, ended=WRONG, basis="b"), same.memory, 180)
    assert kinds(mended) == ["start"]
    well = at(replace(BASE, basis="b"), mended.memory, 400)
    assert [one.reason for one in well.actions] == ["ok: no longer bad_config: idle"]


def test_what_is_still_wrong_after_a_change_is_told_again_only_if_the_error_is_new() -> (
    None
):
    first = at(replace(DEAD, basis="a"), replace(RUNNING, basis="a"), 0).memory
    memory = at(replace(DEAD, ended=WRONG, basis="a"), first, 60).memory
    for second, basis, message in ((180, "b", "unknown key"), (300, "c", "no port")):
        tried = at(replace(DEAD, ended=WRONG, basis=basis), memory, second)
        assert "start" in kinds(tried)
        owner = replace(ENGINE, started_s=START / S + second + 1)
        ended = Exit(owner=owner, code=2, message=message)
        again = at(replace(DEAD, ended=ended, basis=basis), tried.memory, second + 60)
        memory = again.memory
        assert memory.tripped == "bad_config"
        assert kinds(again) == ([] if message == "unknown key" else ["alert"])


def test_an_engine_that_ended_in_order_is_started_again_without_an_alert() -> None:
    ended = Exit(owner=ENGINE, code=0, message="")
    assert kinds(at(replace(DEAD, ended=ended), RUNNING, 400)) == ["restart"]


def test_an_alert_says_how_an_engine_ended_that_had_said_nothing() -> None:
    ended = replace(WRONG, code=1, message="no memory")
    (alert, _) = at(replace(DEAD, status=None, ended=ended), RUNNING, 60).actions
    assert alert.reason == "dead: its process ended with code 1: no memory"


def test_an_old_exit_says_nothing_about_a_later_start() -> None:
    ended = Exit(owner=replace(ENGINE, started_s=START / S - 500), code=2, message="")
    assert kinds(at(replace(DEAD, ended=ended), RUNNING, 60)) == ["alert", "restart"]


def test_a_finished_replay_is_not_started_again_until_its_log_grows() -> None:
    finished = replace(DEAD, status=status(5, state="finished"))
    assert kinds(at(finished, RUNNING, 60)) == []
    grown = replace(finished, waiting=1, waiting_since_us=START + 50 * S)
    assert "restart" in kinds(at(grown, RUNNING, 60))


def test_what_is_stuck_is_asked_to_stop_then_killed_then_started() -> None:
    stuck = replace(BASE, waiting=3, waiting_since_us=START + 10 * S)
    memory = at(stuck, RUNNING, 20).memory
    assert kinds(at(stuck, memory, 320)) == []
    decision = at(stuck, memory, 321)
    assert decision.health is Health.STUCK
    assert kinds(decision) == ["alert", "stop"]
    asked = replace(
        stuck, marker=StopMarker(by_supervisor=True, since_us=START + 321 * S)
    )
    assert kinds(at(asked, decision.memory, 381)) == []
    killed = at(asked, decision.memory, 382)
    assert kinds(killed) == ["kill"]
    gone = at(replace(asked, running=None), killed.memory, 440)
    assert kinds(gone) == ["clear", "restart"], "its end is what was asked for"
    well = at(BASE, gone.memory, 500)
    assert [action.reason for action in well.actions] == ["ok: no longer stuck: idle"]


@pytest.mark.parametrize(
    ("phase", "rejoins", "patience_s"),
    [
        (Phase.START_UP, False, LIMITS.start_up_s),
        (Phase.BATCH, False, LIMITS.batch_s),
        (Phase.BATCH, True, LIMITS.rejoin_s),
        (Phase.WAITING, True, LIMITS.stuck_s),
        ("dancing", False, LIMITS.stuck_s),
    ],
)
def test_how_long_it_may_stand_still_depends_on_what_it_says_that_it_does(
    phase: str, rejoins: bool, patience_s: float
) -> None:
    memory = at(replace(BASE, waiting=3, waiting_since_us=START), RUNNING, 0).memory

    def health(after_s: float, *, beat_s: float) -> Health:
        said = replace(status(5, beat_s=beat_s), phase=phase)
        seen = replace(
            BASE,
            status=said,
            slowest=said,
            waiting=3,
            waiting_since_us=START,
            rejoins=rejoins,
        )
        return at(seen, memory, after_s).health

    assert health(patience_s, beat_s=patience_s - 5) is Health.HEALTHY
    assert health(patience_s + 1, beat_s=patience_s - 5) is Health.STUCK
    silent = LIMITS.stuck_s + LIMITS.silent_s + 1
    assert health(silent, beat_s=LIMITS.stuck_s) is Health.STUCK, "words of long ago"


def test_what_an_archive_said_in_an_earlier_process_counts_no_more() -> None:
    old = replace(status(3, beat_s=-50), job="archive", phase=Phase.WAITING)
    starting = replace(status(5, beat_s=290), phase=Phase.START_UP)
    seen = replace(
        BASE, status=starting, slowest=old, waiting=3, waiting_since_us=START
    )
    memory = at(seen, RUNNING, 0).memory
    assert at(seen, memory, 320).health is Health.HEALTHY


def test_a_look_sees_whether_what_waits_may_join_all_objects_anew(
    tmp_path: Path,
) -> None:
    log = bare_log(tmp_path / "log")
    rows = [Register(query="q", version=1, plan={}, text="", owner=""), Clock(ts_us=1)]
    log.append(to_bytes(rows[0]), arrival_us=1, control=True)
    log.append(b"id,t,x,y\n", arrival_us=1)
    log.append(to_bytes(rows[1]), arrival_us=1, control=True, clock=True)

    def rejoins(segment: int) -> bool:
        write_status(tmp_path, status(segment))
        return observe(tmp_path, wanted=True, now_us=START).rejoins

    assert [rejoins(segment) for segment in range(4)] == [True, False, False, False]


def test_a_batch_may_hold_a_statement_as_far_away_as_its_shards_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("st_common.operations.status.MOST_SEGMENTS", 2)
    log = bare_log(tmp_path / "log")
    for _ in range(4):
        log.append(b"id,t,x,y\n", arrival_us=1)
    row = Register(query="q", version=1, plan={}, text="", owner="")
    log.append(to_bytes(row), arrival_us=1, control=True)

    def rejoins() -> bool:
        return observe(tmp_path, wanted=True, now_us=START).rejoins

    assert not rejoins(), "one shard reads two segments"
    for shards, expected in ((2, False), (3, True)):
        write_record(tmp_path / TOPOLOGY_FILE, {"engine": "spark", "shards": shards})
        assert rejoins() == expected


def test_an_idle_night_does_not_make_the_first_fix_of_the_morning_look_stuck() -> None:
    night = 8 * 3600
    memory = at(BASE, RUNNING, night).memory
    assert at(BASE, memory, night).health is Health.IDLE
    fresh = replace(BASE, waiting=1, waiting_since_us=START + night * S)
    assert at(fresh, memory, night + 1).health is Health.HEALTHY


def test_a_beat_without_movement_is_no_progress() -> None:
    waiting = replace(BASE, waiting=3, waiting_since_us=START)
    memory = at(waiting, RUNNING, 0).memory
    beating = replace(waiting, status=status(5, beat_s=400))
    assert at(beating, memory, 400).health is Health.STUCK


def test_an_archive_that_stands_still_inside_a_living_engine_is_seen(
    tmp_path: Path,
) -> None:
    log = bare_log(tmp_path / "log")
    for _ in range(5):
        log.append(b"id,t,x,y\n", arrival_us=1)
    for job, segment in (("engine", 5), ("archive", 2)):
        write_status(tmp_path, replace(status(segment), job=job))
    seen = observe(tmp_path, wanted=True, now_us=START)
    assert (seen.next_segment, seen.waiting) == (2, 3)
    living = replace(seen, running=BASE.running, waiting_since_us=START)
    memory = at(living, RUNNING, 10).memory
    assert at(living, memory, 311).health is Health.STUCK


def test_of_jobs_at_one_place_the_engine_says_what_is_done(tmp_path: Path) -> None:
    bare_log(tmp_path / "log").append(b"id,t,x,y\n", arrival_us=1)
    for job, phase in (("engine", Phase.BATCH), ("archive", Phase.WAITING)):
        write_status(tmp_path, replace(status(0), job=job, phase=phase))
    assert observe(tmp_path, wanted=True, now_us=START).slowest.phase == Phase.BATCH


def test_slow_is_moving_on_while_more_and_more_waits() -> None:
    memory, conditions = RUNNING, []
    for look in range(8):
        waiting = 10 + 5 * look if look < 6 else 40 - 10 * look // 2
        seen = replace(
            BASE,
            next_segment=5 + look,
            waiting=waiting,
            waiting_since_us=START + (look * 60 - 90) * S,
        )
        decision = at(seen, memory, 200 + look * 60)
        memory = decision.memory
        conditions += [action.reason for action in decision.actions]
    assert [reason.split(":")[0] for reason in conditions] == ["slow", "ok"]
    assert "no longer slow" in conditions[1]


def test_a_young_process_has_time_to_speak() -> None:
    silent = replace(
        BASE, status=status(5, beat_s=-100), waiting=9, waiting_since_us=START - 900 * S
    )
    assert at(silent, RUNNING, 100).health is Health.STARTING
    assert (
        at(silent, at(silent, RUNNING, 100).memory, 301).health is not Health.STARTING
    )


def test_dying_while_starting_gives_one_alert_in_all() -> None:
    memory, alerts = RUNNING, 0
    for second in range(60, 400, 60):
        seen = DEAD if second % 120 else replace(BASE, status=None)
        young = replace(
            seen,
            running=seen.running
            and Running(
                owner=replace(ENGINE, started_s=START / S + second - 5), launched=True
            ),
        )
        decision = at(young, memory, second)
        memory = decision.memory
        alerts += kinds(decision).count("alert")
    assert alerts == 1


def test_a_stream_that_shall_not_run_is_stopped_and_its_marker_cleared() -> None:
    unwanted = replace(BASE, wanted=False)
    assert kinds(at(unwanted, RUNNING, 60)) == ["stop"]
    gone = replace(
        unwanted, running=None, marker=StopMarker(by_supervisor=True, since_us=START)
    )
    assert kinds(at(gone, RUNNING, 120)) == ["clear"]


@pytest.mark.parametrize(
    ("phase", "rejoins", "grace_s"),
    [
        (Phase.WAITING, False, LIMITS.stop_grace_s),
        (Phase.BATCH, False, LIMITS.batch_s),
        (Phase.BATCH, True, LIMITS.rejoin_s),
        (Phase.START_UP, False, LIMITS.start_up_s),
    ],
)
def test_a_batch_or_a_start_up_may_end_before_who_was_asked_to_stop_is_killed(
    phase: Phase, rejoins: bool, grace_s: float
) -> None:
    def after(seconds: float, spoke_s: float) -> list[str]:
        said = replace(status(5, beat_s=spoke_s), phase=phase)
        asked = replace(
            BASE,
            wanted=False,
            marker=StopMarker(by_supervisor=True, since_us=START),
            status=said,
            slowest=said,
            rejoins=rejoins,
        )
        return kinds(at(asked, Memory(), seconds))

    assert after(grace_s, spoke_s=grace_s) == []
    assert after(grace_s + 1, spoke_s=grace_s) == ["kill"]
    silent_s = LIMITS.silent_s + 2
    assert after(silent_s, spoke_s=1) == ["kill"], "whoever says nothing hangs"


@pytest.mark.parametrize("wanted", [True, False])
def test_an_engine_that_a_person_started_is_left_alone(wanted: bool) -> None:
    by_hand = replace(
        BASE,
        wanted=wanted,
        running=Running(owner=ENGINE, launched=False),
        waiting=3,
        waiting_since_us=START,
    )
    memory = at(by_hand, RUNNING, 0).memory
    assert not {ActionKind.STOP, ActionKind.KILL} & {
        action.kind for action in at(by_hand, memory, 9999).actions
    }


def test_a_persons_marker_holds_a_stream_until_it_is_removed() -> None:
    held = replace(DEAD, marker=StopMarker(by_supervisor=False, since_us=START))
    decision = at(held, RUNNING, 60)
    assert kinds(decision) == []
    assert kinds(at(DEAD, decision.memory, 120)) == ["restart"]


def test_memory_survives_a_round_trip_and_a_foreign_record_is_an_empty_memory() -> None:
    memory = at(replace(BASE, waiting=3, waiting_since_us=START), RUNNING, 60).memory
    assert Memory.from_json(memory.to_json()) == memory
    assert Memory.from_json({"colour": "blue"}) == Memory.from_json(None) == Memory()
