"""One tick of the supervisor: look at every stream, compare with what should run, act, alert. It holds nothing itself.

Deliveries are tended as streams are: a process that shall run, in a folder of its own. For them nothing waits here: a
receiver that is away is their own business. They are started when they are dead, and stopped when they shall not run.

A tick may be killed anywhere. What it knows lies in the streams' folders; what it did not get to do, the next tick
finds to be done; what it did without recording it, the next tick finds as it is.
"""

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from st_common.config.home import Home
from st_common.config.operations import Limits, limits_of
from st_common.config.stream import StreamSettings
from st_common.config.streams import broken_of
from st_common.errors import (
    FairwayError,
    FencedError,
    StorageError,
    TransientError,
)
from st_common.operations.alerts import Alert, append_alert
from st_common.operations.basis import basis_of, digest
from st_common.operations.decide import BAD_CONFIG, Action, ActionKind, Memory, decide
from st_common.operations.health import observe
from st_common.operations.judged import MEMORY_FILE, UNSEEN, memory_record
from st_common.operations.launcher import (
    Detached,
    Launcher,
    OnCluster,
    find,
    kill_launched,
)
from st_common.operations.lease import Lease
from st_common.operations.records import held_lock, write_record
from st_common.operations.stop import clear_marker, place_marker
from st_common.operations.supervising import is_mine
from st_common.storage import refused

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """How engines are started.

    Attributes:
        command: gives the command line for a stream.
        launcher: gives what starts a stream.
        deliver: gives the command line of a delivery, by its name; None: deliveries are left alone.
        here: starts deliveries.
    """

    command: Callable[[StreamSettings], Sequence[str]]
    launcher: Callable[[StreamSettings], Launcher] = lambda _: Detached()
    deliver: Callable[[str], Sequence[str]] | None = None
    here: Launcher = field(default_factory=Detached)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ward:
    """What the supervisor looks after: `wanted` says whether it shall run; no `start`: it cannot be started.

    `wrong` says what is wrong with its settings: then nobody knows whether it shall run, and it is left as it is.
    `basis` is a digest of what a start depends on.
    """

    label: str
    folder: Path
    wanted: bool
    start: Callable[[int], None] | None
    wrong: str = ""
    basis: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Supervisor:
    """What a tick needs to know.

    Attributes:
        home: the home folder.
        engines: how engines are started.
        limits: how patient to be with them.
        basis: a digest of what every start depends on, see `basis_of`.
    """

    home: Home
    engines: Engines
    limits: Limits = field(default_factory=Limits)
    basis: str = ""


def job_supervisor(home: Home, conf: Path) -> Supervisor:
    """A supervisor whose engines are `st_common.processes.run_stream`, run by this Python.

    Streams whose settings name a cluster that starts drivers are drivers there, all others processes of this machine.
    Home and settings are given to an engine as whole paths, for its command line identifies it. How patient the
    supervisor is stands in `conf`/operations.toml.

    Raises:
        ConfigError: that file is wrong.
    """
    root = Path(__file__).resolve().parents[2]
    places = ["--home", str(home.root.resolve()), "--conf", str(conf.resolve())]
    here = Detached(cwd=root)

    def command(stream: StreamSettings) -> list[str]:
        program = ["-m", "st_common.processes.run_stream"]
        if _is_on_cluster(stream):
            program = [str(root / "st_common" / "processes" / "run_stream.py")]
        return [
            sys.executable,
            *program,
            stream.name,
            *places,
            "--engine",
            stream.engine,
        ]

    def deliver(name: str) -> list[str]:
        program = ["-m", "st_common.processes.deliver"]
        return [sys.executable, *program, name, *places]

    def launcher(stream: StreamSettings) -> Launcher:
        if _is_on_cluster(stream):
            return OnCluster(place=stream.spark)
        return replace(here, place=stream.spark) if stream.engine == "spark" else here

    engines = Engines(command=command, launcher=launcher, deliver=deliver, here=here)
    return Supervisor(
        home=home, engines=engines, limits=limits_of(conf), basis=basis_of(conf)
    )


def _is_on_cluster(stream: StreamSettings) -> bool:
    """Whether a cluster starts the stream's driver."""
    return stream.engine == "spark" and stream.spark.rest is not None


def tick(
    supervisor: Supervisor,
    streams: Mapping[str, StreamSettings],
    *,
    now_us: int,
    deliveries: Mapping[str, bool] | None = None,
    by: Lease | None = None,
    act: bool = True,
) -> list[Action]:
    """Looks at every stream and delivery once and does what is to be done, in seconds.

    Streams that the settings do not name any more are stopped if they were launched from here. A stream that cannot be
    looked at (its log is broken), or of which the disk keeps nothing, is alerted and left as it is; the others get
    their turn all the same.

    Args:
        supervisor: The home and how to run engines.
        streams: The settings; `running` says what should run.
        now_us: The time in microseconds since 1970.
        deliveries: Whether each delivery shall run, by name.
        by: The lease of who ticks, where he looks after the home for as long as he lives.
        act: False: nothing is done and nobody is alerted; what is to be done waits for a tick that acts.

    Returns:
        What was done, or is to be done, stream by stream, a delivery as "delivery NAME"; empty also while another tick
        is at work, or another process looks after the home.
    """
    with _alone(supervisor.home, now_us=now_us) as mine:
        if not mine or not is_mine(supervisor.home, by, now_us=now_us):
            return []
        wards = _wards(supervisor, streams, deliveries or {})
        return [
            action
            for ward in wards
            for action in _tended(supervisor, ward, now_us=now_us, act=act)
        ]


@contextmanager
def _alone(home: Home, *, now_us: int) -> Iterator[bool]:
    """Holds the lock of ticks; False while another one is at work. Alerts where not even that can be had."""
    with ExitStack() as stack:
        try:
            mine = stack.enter_context(
                held_lock(home.root / ".supervisor.lock", wait=False)
            )
        except OSError as error:
            _say(
                home,
                _alert("supervisor", f"nothing is looked after: {refused(error)}"),
                now_us=now_us,
            )
            raise
        yield mine


def _wards(
    supervisor: Supervisor,
    streams: Mapping[str, StreamSettings],
    deliveries: Mapping[str, bool],
) -> Iterator[_Ward]:
    yield from _wards_of_streams(supervisor, streams)
    home, engines = supervisor.home, supervisor.engines
    if engines.deliver is None:
        return
    for name in [
        *deliveries,
        *(name for name in _launched(home, "deliveries") if name not in deliveries),
    ]:
        yield _Ward(
            label=f"delivery {name}",
            folder=home.delivery(name),
            wanted=deliveries.get(name, False),
            start=_starter(
                engines.here, home.delivery(name), partial(engines.deliver, name)
            ),
            basis=supervisor.basis,
        )


def _wards_of_streams(
    supervisor: Supervisor, streams: Mapping[str, StreamSettings]
) -> Iterator[_Ward]:
    """Of streams whose settings are wrong, that settings describe, and that run though nothing describes them."""
    home, engines = supervisor.home, supervisor.engines
    broken = broken_of(streams)
    for name, error in broken.items():
        yield _Ward(
            label=name,
            folder=home.stream(name),
            wanted=False,
            start=None,
            wrong=str(error),
        )
    known = {*streams, *broken}
    for name in [
        *streams,
        *(name for name in _launched(home, "streams") if name not in known),
    ]:
        stream = streams.get(name)
        start = None
        if stream is not None:
            start = _starter(
                engines.launcher(stream),
                home.stream(name),
                partial(engines.command, stream),
            )
        yield _Ward(
            label=name,
            folder=home.stream(name),
            wanted=stream is not None and stream.running,
            start=start,
            basis=digest(supervisor.basis, repr(stream)),
        )


def _starter(
    launcher: Launcher, folder: Path, command: Callable[[], Sequence[str]]
) -> Callable[[int], None]:
    """What starts an engine at a time, once nothing is left of the one before it."""

    def start(now_us: int) -> None:
        kill_launched(folder)  # it must not work on beside the new one
        launcher.launch(folder, command(), now_us=now_us)

    return start


def _launched(home: Home, kind: str) -> list[str]:
    return sorted(path.parent.name for path in (home.root / kind).glob("*/engine.json"))


def _tended(
    supervisor: Supervisor, ward: _Ward, *, now_us: int, act: bool
) -> list[Action]:
    """As `_tend`; where the disk takes nothing it alerts, at each tick, and the others get their turn all the same."""
    try:
        return _tend(supervisor, ward, now_us=now_us, act=act)
    except (StorageError, OSError) as error:
        action = _alert(ward.label, f"it is left as it is: {refused(error)}")
        if act:
            _say(supervisor.home, action, now_us=now_us)
        return [action]


def _tend(
    supervisor: Supervisor, ward: _Ward, *, now_us: int, act: bool
) -> list[Action]:
    memory = Memory.from_json(memory_record(ward.folder))
    set_aside = partial(_set_aside, supervisor, ward, memory, now_us=now_us, act=act)
    if ward.wrong:
        return set_aside((BAD_CONFIG, ward.wrong))
    try:
        looked = observe(ward.folder, wanted=ward.wanted, now_us=now_us)
        seen = replace(looked, stream=ward.label, basis=ward.basis)
    except (FairwayError, OSError) as error:
        return set_aside((UNSEEN, str(error)))
    decision = decide(seen, memory, now_us=now_us, limits=supervisor.limits)
    if decision.actions and not act:
        return list(decision.actions)
    for action in decision.actions:
        if action.kind is ActionKind.ALERT:
            _say(supervisor.home, action, now_us=now_us)
    # A stream that never ran, and shall not, gets no folder.
    if ward.wanted or ward.folder.exists():
        write_record(
            ward.folder / MEMORY_FILE,
            {**decision.memory.to_json(), "health": decision.health},
        )
    try:
        return [one for one in decision.actions if _apply(ward, one, now_us=now_us)]
    except TransientError as error:
        # Nothing was started: a cluster that is away for long is no crash loop, and may be why others ended.
        kept = replace(decision.memory, starts_us=(), tripped="")
        write_record(ward.folder / MEMORY_FILE, {**kept.to_json(), "health": UNSEEN})
        return _set_aside(
            supervisor, ward, kept, (UNSEEN, str(error)), now_us=now_us, act=act
        )


def _set_aside(
    supervisor: Supervisor,
    ward: _Ward,
    memory: Memory,
    why: tuple[str, str],
    *,
    now_us: int,
    act: bool,
) -> list[Action]:
    """Alerts once that something can be neither judged nor tended, for a condition and a reason; it stays as it is."""
    condition, reason = why
    action = _alert(ward.label, f"{condition}: {reason}")
    is_news = memory.condition != condition
    if is_news and not act:
        return [action]
    if is_news:
        _say(supervisor.home, action, now_us=now_us)
    if is_news or memory.why != reason:
        kept = replace(memory, condition=condition, why=reason)
        write_record(ward.folder / MEMORY_FILE, {**kept.to_json(), "health": condition})
    return [action] if is_news else []


def _alert(label: str, text: str) -> Action:
    return Action(stream=label, kind=ActionKind.ALERT, reason=text, level="error")


def _say(home: Home, action: Action, *, now_us: int) -> None:
    append_alert(
        home,
        Alert(ts=now_us, stream=action.stream, level=action.level, text=action.reason),
    )


def _apply(ward: _Ward, action: Action, *, now_us: int) -> bool:
    """Does one thing; False when it turned out that nothing was to be done."""
    match action.kind:
        case ActionKind.START | ActionKind.RESTART:
            return ward.start is not None and _start(ward.start, now_us=now_us)
        case ActionKind.STOP:
            place_marker(ward.folder, now_us=now_us)
        case ActionKind.CLEAR:
            clear_marker(ward.folder)
        case ActionKind.KILL:
            running = find(ward.folder, now_us=now_us)
            return (
                running is not None
                and running.launched
                and kill_launched(ward.folder) > 0
            )
        case ActionKind.ALERT:
            pass
    return True


def _start(start: Callable[[int], None], *, now_us: int) -> bool:
    try:
        start(now_us)
    except FencedError as error:
        _LOG.info("%s", error)
        return False
    return True
