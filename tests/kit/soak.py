"""A long random life of the local engine: every kind of query, restarts, kill -9, and equal answers in the end.

One round is a log of some hundred rows that is written while the engine reads it. In between the engine commits, stores
its state, is dropped without a word, or runs in a process of its own that is killed. At the end the changes must be
those of brute force, row for row, and `verify` must find nothing.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from random import Random

from st_common import tables
from st_common.checks.verify import verify
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine import local
from st_common.engine.archive import Archive
from tests.kit import oracle
from tests.kit.laws import told, told_by_oracle
from tests.kit.layer_tables import store_layers
from tests.kit.log_writer import settings_of, write_log
from tests.kit.strategies import MARGINS, STREAM, Case, case_of

NAMES = tuple(f"q{number}" for number in range(8))
ACTS = ("batch", "batch", "batch", "commit", "store", "crash", "archive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What a round was: its seed, how much it told, and how often the engine was started anew and killed."""

    seed: int
    rows: int
    changes: int
    restarts: int
    kills: int


def live(folder: Path, *, seed: int, rows: int = 400, kills: int = 0) -> Round:
    """One round in an empty folder; `kills` is how many processes are killed.

    Raises:
        AssertionError: the changes are not those of brute force, or `verify` finds an answer that does not hold.
    """
    rng, home = Random(seed), Home(folder)
    case = stored(home, seed, rows)
    stream = settings_of(STREAM, case.rules, margin=rng.choice(MARGINS))
    cuts = sorted(
        rng.sample(range(1, len(case.rows)), min(len(case.rows) - 1, 4 + rows // 12))
    )
    parts = [case.rows[a:b] for a, b in pairwise([0, *cuts, len(case.rows)])]
    killed_at = set(rng.sample(range(len(parts)), min(kills, len(parts))))
    order, restarts = _lived(home, stream, parts, rng, killed_at)
    changes = judge(home, stream, case, order, seed)
    return Round(
        seed=seed,
        rows=len(case.rows),
        changes=changes,
        restarts=restarts,
        kills=len(killed_at),
    )


def judge(
    home: Home, stream: StreamSettings, case: Case, order: dict[int, int], seed: int
) -> int:
    """Compares what a stream told with brute force over a case, and asks `verify`; how many changes there are.

    Args:
        home: the home folder.
        stream: the settings of the stream.
        case: the rows of its log, and the layers.
        order: the place of each position of the log among the rows of the case.
        seed: that of the case, for the message.

    Raises:
        AssertionError: something does not hold.
    """
    changes = tables.read(home.table("changes", STREAM))
    expected = oracle.judge(case.rows, layers=case.layers, rules=case.rules)
    one, other = told(changes, order), told_by_oracle(expected.changes)
    if one != other:
        differ = sorted(set(one) ^ set(other), key=repr)[:5]
        raise AssertionError(
            f"seed {seed}: the changes are not those of brute force, they differ in {differ} .."
        )
    wrong = [each.query for each in verify(home, stream) if not each.holds]
    if wrong:
        names = ", ".join(wrong)
        raise AssertionError(f"seed {seed}: verify finds what does not hold: {names}")
    return len(changes)


def stored(home: Home, seed: int, rows: int) -> Case:
    """The case of a seed, with layers where each of their versions has a feature."""
    case = case_of(seed, layers=True, kept=(True,) * rows, names=NAMES)
    if all(case.layers.values()):
        return store_layers(home, case)
    return case_of(seed, kept=(True,) * rows, names=NAMES)


def _lived(
    home: Home,
    stream: StreamSettings,
    parts: Sequence[Sequence[oracle.Row]],
    rng: Random,
    killed_at: set[int],
) -> tuple[dict[int, int], int]:
    """Writes the log part by part, with the engine at work; the order of positions, and how often it started anew."""
    order: dict[int, int] = {}
    engine, archive, restarts = (
        local.LocalEngine(home, stream),
        Archive(home, stream),
        0,
    )
    for number, part in enumerate(parts):
        written = write_log(home.log(STREAM), part)
        numbers = range(len(order), len(order) + len(part))
        order |= dict(zip(sorted(written.order), numbers, strict=True))
        act = "kill" if number in killed_at else rng.choice(ACTS)
        if act in ("crash", "kill"):
            engine.abandon()
            if act == "kill":
                _killed(home, stream, delay_s=rng.random() / 5)
            engine, restarts = local.LocalEngine(home, stream), restarts + 1
        elif act == "archive":
            archive.batch()
        else:
            getattr(engine, act)()
    while engine.batch():
        pass
    engine.close()
    while archive.batch():
        pass
    return order, restarts


def _killed(home: Home, stream: StreamSettings, *, delay_s: float) -> None:
    """Runs the engine in a process of its own, and kills it a little after it has begun."""
    ready = home.root / "ready"
    ready.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-m",
        __name__,
        str(home.root),
        json.dumps(asdict(_rules(stream))),
    ]
    process = subprocess.Popen(command)
    while not ready.exists() and process.poll() is None:
        time.sleep(0.005)
    time.sleep(delay_s)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


def _rules(stream: StreamSettings) -> oracle.Rules:
    return oracle.Rules(
        lateness_us=round(stream.lateness_s * 1e6),
        tick_us=round(stream.tick_s * 1e6),
        geographic=not stream.space.is_flat,
        silence_us=None if stream.silence_s is None else round(stream.silence_s * 1e6),
    )


def follow(home: Home, stream: StreamSettings) -> None:
    """Reads the log segment by segment, commits now and then, stores at times, and never ends: it is to be killed."""
    local.BATCH_BYTES = 1
    engine = local.LocalEngine(home, stream)
    (home.root / "ready").touch()
    for number in range(1 << 30):
        if not engine.batch():
            engine.commit()
        elif number % 3 == 0:
            engine.commit() if number % 2 else engine.store()


if __name__ == "__main__":
    follow(
        Home(Path(sys.argv[1])),
        settings_of(STREAM, oracle.Rules(**json.loads(sys.argv[2]))),
    )
