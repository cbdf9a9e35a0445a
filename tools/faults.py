"""Breaks a running stream in every way that machines break, and judges what is left by a run that nobody disturbed.

usage: faults.py [--seed N] [--keep] [FAULT ..]        (all of them when none is named; --list says which there are)

Each round makes a home, feeds a stream, follows its changes, and does the damage while all that is at work. Then the
engine runs once more to the end of the log. The judge is always the same: a new home gets the log that survived and
runs it in peace; both must tell the same changes, row for row. What a follower was told must be among them, once, and
every part of the feed that was acknowledged must be in the table of positions. All by the command line, as users do.
Needs root for file systems of their own (power cut, full disk) and for other namespaces.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fault_disks import cut_power, disk_of, filled, mount_again, turn_read_only
from fault_files import (
    flipped_state,
    older_table,
    stray_file,
    torn_packet,
    torn_raw,
    torn_records,
    torn_segment,
)
from fault_place import (
    STREAM,
    BrokenError,
    Place,
    at_work,
    judge,
    kill,
    position,
    rerun,
    until,
)

from st_common.config.home import Home
from st_common.operations.alerts import read_alerts

REFUSED = 4  # exit code of a process whose stream belongs to another one
ON_SPARK = """shards = 2

[streams.load.spark]
"""
NO_STORAGE = 75  # of one that the disk takes nothing of
FOREIGN_S = 125.0
"""So long, and a little more, a lease of a process lives that cannot be looked at."""


# --- what is done to it ----------------------------------------------------------------------------------------------


def kill_engine(place: Place) -> None:
    """Kills (-9) the engine, five times; each time another one goes on."""
    with at_work(place) as first:
        engine = first
        for _ in range(5):
            kill(engine)
            engine = place.spawn("run", STREAM, "--engine", "local")
            time.sleep(place.rng.uniform(1, 5))
    rerun(place)


def kill_capture(place: Place) -> None:
    """Kills (-9) the process that feeds, five times; the next part comes all the same."""
    with at_work(place):
        for _ in range(5):
            kill([process for process in place.started if "replay" in process.args][-1])
            time.sleep(place.rng.uniform(0.5, 3))
    rerun(place)


def paused_owner(place: Place) -> None:
    """SIGSTOP of the engine; one that cannot see it takes over when its lease is old; SIGCONT."""
    with at_work(place) as engine:
        os.killpg(engine.pid, signal.SIGSTOP)
        time.sleep(FOREIGN_S)
        elsewhere = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
        other = place.spawn("run", STREAM, "--engine", "local", before=elsewhere)
        before = position(place)
        until(
            lambda: position(place) > before or other.poll() is not None,
            "another one has taken over",
        )
        if other.poll() is not None:
            raise BrokenError(
                f"nobody can take over from a paused engine: exit {other.returncode}"
            )
        os.killpg(engine.pid, signal.SIGCONT)
        until(lambda: engine.poll() is not None, "the paused engine has noticed")
        if engine.returncode != REFUSED:
            raise BrokenError(
                f"the paused engine ended with {engine.returncode}, not {REFUSED}"
            )
    time.sleep(FOREIGN_S)  # nobody can look at the second one either, which is dead now
    rerun(place)


def clock_step(place: Place) -> None:
    """A second engine is started where the machine seems to have been started an hour later: it is refused."""
    stat = place.notes / "stat"
    lines = Path("/proc/stat").read_text().splitlines()
    stat.write_text(
        "\n".join(
            f"btime {int(x.split()[1]) + 3600}" if x.startswith("btime") else x
            for x in lines
        )
        + "\n"
    )
    stepped = (
        "unshare",
        "--mount",
        "sh",
        "-c",
        f'mount --bind {stat} /proc/stat && exec "$@"',
        "sh",
    )
    with at_work(place) as engine:
        second = place.spawn("run", STREAM, "--engine", "local", before=stepped)
        until(
            lambda: second.poll() is not None or engine.poll() is not None,
            "one of two engines has ended",
        )
        if second.poll() != REFUSED:
            raise BrokenError(
                f"a second engine was not refused: {second.poll()}, and the first one: {engine.poll()}"
            )
    rerun(place)


def disk_full(place: Place) -> None:
    """What is left of the disk is taken and given back, three times."""
    with at_work(place) as first:
        engine = first
        for _ in range(3):
            with filled(place.root.parent):
                time.sleep(place.rng.uniform(1, 4))
            if engine.poll() is not None:
                _judge_end(place, engine)
                engine = place.spawn("run", STREAM, "--engine", place.engine)
                _until_further(place, engine)
            time.sleep(place.rng.uniform(1, 4))
    rerun(place)


def disk_full_spark(place: Place) -> None:
    """The same with the engine on Spark, whose tasks stay."""
    place.engine, place.settings = "spark", ON_SPARK
    disk_full(place)


def _until_further(place: Place, engine: subprocess.Popen[bytes]) -> None:
    """Waits until an engine that was started anew is at work; one that ends by itself is judged by who looks next."""
    before = position(place)
    until(
        lambda: position(place) > before or engine.poll() is not None,
        "the engine that was started anew is at work",
    )


def tick_on_full_disk(place: Place) -> None:
    """The engine dies, and the supervisor looks when nothing is left of the disk: it alerts; with room it starts it."""
    with at_work(place) as engine:
        place.tick()  # so it knows that the engine lived
        kill(engine)
        with filled(place.root.parent):
            _alerted(place, place.tick(), "load", "dead: ")
        done = place.tick()
        if done.returncode or place.launched() is None:
            raise BrokenError(
                f"a tick with room again: {done.returncode}: {done.stdout} {done.stderr}"
            )
        before = position(place)
        until(
            lambda: position(place) > before, "the engine that was launched is at work"
        )
    rerun(place)


def _alerted(
    place: Place, done: subprocess.CompletedProcess[str], stream: str, text: str
) -> None:
    """Makes sure that a tick alerted, in the file or on stderr, and ended without a traceback."""
    said = [alert.stream + ": " + alert.text for alert in read_alerts(Home(place.root))]
    told = done.stderr.replace("alert: ", "").splitlines() + said
    if (
        done.returncode not in (0, NO_STORAGE)
        or "Traceback" in done.stderr
        or not any(line.startswith(f"{stream}: {text}") for line in told)
    ):
        raise BrokenError(f"a tick ended with {done.returncode}: {told[:4]}")


def _judge_end(place: Place, engine: subprocess.Popen[bytes]) -> None:
    """Makes sure that an engine of which the disk took nothing ended with a line that names a file."""
    said = (place.notes / f"{place.started.index(engine):02d}-run.err").read_text()
    if (
        engine.returncode != NO_STORAGE
        or "Traceback" in said
        or str(place.root) not in said
    ):
        raise BrokenError(
            f"an engine that the disk took nothing of ended with {engine.returncode}: {said[-300:]}"
        )


def _refused(done: subprocess.CompletedProcess[str], what: str) -> None:
    """Makes sure that a command ended with the code of a disk that takes nothing, and said this without a traceback."""
    if (
        done.returncode != NO_STORAGE
        or what not in done.stderr
        or "Traceback" in done.stderr
    ):
        raise BrokenError(
            f"{done.args[1:]} ended with {done.returncode}: {done.stderr.strip()[-300:]}"
        )


def read_only(place: Place) -> None:
    """The file system turns read-only, as after an error of its disk: all stop with a line; then all go on."""
    with at_work(place) as engine:
        turn_read_only(place.root.parent)
        until(lambda: engine.poll() is not None, "the engine has noticed")
        _judge_end(place, engine)
        _refused(place.call("run", STREAM), str(place.root))
        _refused(place.call("query", "drop", "left"), str(place.root))
        _alerted(place, place.tick(), "supervisor", "nothing is looked after: ")
    mount_again(place.root.parent)
    rerun(place)


def power_cut(place: Place) -> None:
    """The file system stops at once and forgets what was not synced."""
    with at_work(place):
        cut_power(place.root)
    mount_again(place.root.parent)
    rerun(place)


# --- rounds ----------------------------------------------------------------------------------------------------------

FAULTS = {
    found.__name__: found
    for found in (
        kill_engine,
        kill_capture,
        paused_owner,
        clock_step,
        disk_full,
        disk_full_spark,
        tick_on_full_disk,
        read_only,
        power_cut,
        older_table,
        flipped_state,
        torn_records,
        torn_segment,
        torn_packet,
        torn_raw,
        stray_file,
    )
}


def round_of(fault: str, seed: int, folder: Path) -> str:
    """One round: gives what held.

    Raises:
        BrokenError: what did not.
    """
    notes = folder / "notes"
    notes.mkdir(parents=True)
    with disk_of(fault, folder) as disk:
        place = Place(
            root=disk / "home",
            notes=notes,
            rng=random.Random(f"{fault} {seed}"),  # noqa: S311 - to be repeated
        )
        try:
            FAULTS[fault](place)
            return judge(place)
        except subprocess.TimeoutExpired as error:
            raise BrokenError(f"a command did not end: {error.cmd}") from error
        finally:
            place.kill_all()


def main(arguments: list[str]) -> int:
    """Runs the rounds; gives back 1 when something did not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("faults", nargs="*")
    parser.add_argument("--seed", type=int, default=time.time_ns() // 1_000_000_000)
    parser.add_argument(
        "--keep",
        action="store_true",
        help="leave the folders of rounds that did not hold",
    )
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args(arguments)
    if args.list:
        print("\n".join(f"{name:15} {found.__doc__}" for name, found in FAULTS.items()))
        return 0
    unknown = sorted(set(args.faults) - set(FAULTS))
    if unknown:
        parser.error(
            f"no such fault: {' '.join(unknown)} (there are: {' '.join(FAULTS)})"
        )
    broken = sum(
        not _told(name, args.seed, keep=args.keep) for name in args.faults or FAULTS
    )
    print(
        f"{broken} did not hold; to replay: make deep ARGS='faults --seed {args.seed}'"
    )
    return 1 if broken else 0


def _told(fault: str, seed: int, *, keep: bool) -> bool:
    folder, start_s = (
        Path(tempfile.mkdtemp(prefix=f"faults-{fault}-")),
        time.monotonic(),
    )
    try:
        held, said = True, round_of(fault, seed, folder)
    except (BrokenError, subprocess.CalledProcessError) as error:
        held, said = False, str(error)
    print(
        f"{'held ' if held else 'BROKE'} {fault:15} {time.monotonic() - start_s:5.0f} s  {said}",
        flush=True,
    )
    if held or not keep:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        print(f"      kept in {folder}")
    return held


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
