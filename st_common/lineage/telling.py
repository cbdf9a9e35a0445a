"""Tells of one run of a job: that it begins, and how it ends."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from st_common.config.home import Home
from st_common.errors import FairwayError, FencedError
from st_common.layers.table import table_path
from st_common.lineage.settings import lineage_settings
from st_common.observed import observing
from st_common.query.lookup import queries


@dataclass(slots=True)
class Ending:
    """How the run ends, where no error says so. `failure` is why it failed all the same; "" for nothing."""

    failure: str = ""


@contextmanager
def telling(
    home: Home,
    conf: Path,
    job: str,
    *,
    is_stream: bool = False,
    reads: Iterable[Path] = (),
    writes: Iterable[Path] = (),
) -> Iterator[Ending]:
    """Tells of the body of a `with` as a run of a job, where `[lineage]` of conf/operations.toml says to whom.

        the body                        the last event
        ends                            COMPLETE, or FAIL where it set `failure`
        raises an error                 FAIL, with what the error says
        is interrupted, or taken over   ABORT
        is killed                       none; the next run of this home sends ABORT in its place

    The last event has all that the process read and wrote meanwhile, see `observed`.

    Args:
        home: the home folder.
        conf: the folder of the settings.
        job: its name, such as `maintain`, `run_stream.taxis`.
        is_stream: it follows a stream, and is no batch.
        reads: tables, logs and files that it reads for sure: the first event has them too.
        writes: tables that it writes for sure.

    Raises:
        ConfigError: the settings are wrong, or the secret's environment variable is not set.
    """
    settings = lineage_settings(conf)
    ending = Ending()
    if settings is None:
        yield ending
        return
    from st_common.lineage.run import (
        Telling,
    )  # imports what speaks OpenLineage: only for who tells

    with observing() as seen, Telling(home, settings, job, is_stream=is_stream) as run:
        seen.reads |= dict.fromkeys(reads)
        seen.writes |= dict.fromkeys(writes)
        run.tell("START", seen)
        try:
            yield ending
        except BaseException as error:
            is_cut = isinstance(error, FencedError) or not isinstance(error, Exception)
            state = "ABORT" if is_cut else "FAIL"
            run.tell(state, seen, str(error) or type(error).__name__)
            raise
        run.tell("FAIL" if ending.failure else "COMPLETE", seen, ending.failure)


@contextmanager
def telling_stream(home: Home, conf: Path, stream: str) -> Iterator[None]:
    """As `telling`, of a run of a stream's engine: its log and the layers that its queries join are what it reads.

    Args:
        home: the home folder.
        conf: the folder of the settings.
        stream: the stream.
    """
    if lineage_settings(conf) is None:
        yield
        return
    reads = [home.log(stream), *_joined(home, stream)]
    writes = [home.table(name, stream) for name in ("changes", "positions")]
    with telling(
        home,
        conf,
        f"run_stream.{stream}",
        is_stream=True,
        reads=reads,
        writes=[*writes, home.table("rejects")],
    ):
        yield


def _joined(home: Home, stream: str) -> list[Path]:
    """The tables of the layers that the stream's queries join; none where a log cannot be read: who runs it says so."""
    try:
        plans = [row.plan for row in queries(home) if row.stream == stream]
    except FairwayError:
        return []
    layers = {plan.join.layer for plan in plans if plan and plan.join}
    return [table_path(home, layer) for layer in sorted(layers)]
