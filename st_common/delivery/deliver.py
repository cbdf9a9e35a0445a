"""One delivery: follows the changes of a stream and hands them to a receiver, at least once and in their order."""

import logging
import random
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from st_common.answers.follow import FIRST, POLL_S, Follower
from st_common.answers.outlets import Outlet
from st_common.config.home import Home
from st_common.delivery.dead_letters import Dead, DeadLetters
from st_common.delivery.gate import Gate
from st_common.delivery.message import Messages, messages
from st_common.delivery.outcome import Failed, Outcome, Receiver, Refused, Taken
from st_common.delivery.progress import Progress, read_progress, write_progress
from st_common.delivery.settings import DeliverySettings
from st_common.engine.owner import BEAT_S, Owner, now_us, owned_folder
from st_common.errors import FairwayError, TransientError
from st_common.operations.alerts import tell
from st_common.operations.records import private_folder
from st_common.operations.retry import pause_s
from st_common.operations.status import read_status

ALERT_S = 60.0  # a receiver that fails for longer is alerted
_SLICE_S = 0.2  # of a pause, between two looks at the stop marker
_LOG = logging.getLogger(__name__)


class _StopError(Exception):
    """Somebody asked this delivery to stop."""


class _HeldError(Exception):
    """A change is of a day that may not go yet, and nobody waits for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverySummary:
    """What a run did: changes that were acknowledged, those refused for good, tries that failed."""

    delivery: str
    to: str
    seconds: float
    delivered: int
    dead_letters: int
    failed_tries: int
    position: int

    def to_json(self) -> dict[str, Any]:
        """The summary as JSON values."""
        return asdict(self)


def deliver(
    home: Home, delivery: DeliverySettings, *, until_idle: bool
) -> DeliverySummary:
    """Delivers until it is asked to stop; with `until_idle` until all that is committed now is settled.

    What was sent and not noted before a crash is sent again, with the same ids. Reads the table `changes` of the live
    stream and its journal, nothing else: history that is written again delivers nothing.

    Raises:
        ConfigError: the secret is not there, or the delivery belonged to another stream before.
        FencedError: another process has this delivery.
        TransientError: with `until_idle`: the receiver failed for `retry_max_s`; nothing is lost.
        FairwayError: a change was refused, and there shall be no dead letters.
    """
    started_s = time.monotonic()
    private_folder(home.delivery(delivery.name))
    with owned_folder(home.delivery(delivery.name), engine=delivery.to) as owner:
        receiver = delivery.sink.receiver(delivery.name, home)
        run = Delivery(home, delivery, owner, receiver, until_idle=until_idle)
        try:
            run.follow()
        finally:
            receiver.close()
    before, after = run.first, run.progress
    return DeliverySummary(
        delivery=delivery.name,
        to=delivery.to,
        seconds=round(time.monotonic() - started_s, 3),
        delivered=after.delivered - before.delivered,
        dead_letters=after.dead_letters - before.dead_letters,
        failed_tries=run.failed_tries,
        position=after.position,
    )


class Delivery:
    """The run of one delivery by its owner."""

    def __init__(
        self,
        home: Home,
        delivery: DeliverySettings,
        owner: Owner,
        receiver: Receiver,
        *,
        until_idle: bool,
    ) -> None:
        self._home, self._delivery, self._owner, self._receiver = (
            home,
            delivery,
            owner,
            receiver,
        )
        self._until_idle = until_idle
        self.progress = self._begin()
        self.first = self.progress
        self._dead = DeadLetters(
            home, delivery.name, delivery.stream, after=self.progress.place
        )
        self._follower = Follower(home, delivery.stream, after=self.progress.place)
        self._outlet = Outlet(home, delivery.stream)
        self._gate = Gate(home, delivery.stream) if delivery.after_quality else None
        self._held = ""  # why the delivery is held, as it was alerted
        self._chance = random.Random()  # noqa: S311 - spreads tries, keeps no secret
        self.failed_tries = 0
        self._refusing = False  # whether that was alerted
        self._beaten_s = 0.0

    def _begin(self) -> Progress:
        folder, stream = self._owner.folder, self._delivery.stream
        kept = read_progress(folder, stream)
        if kept is not None:
            return kept
        place = (
            FIRST
            if self._delivery.start == "first"
            else Follower(self._home, stream).skip()
        )
        progress = Progress(stream=stream, position=place[0], seq=place[1])
        write_progress(folder, progress)
        return progress

    def follow(self) -> None:
        """Delivers what is committed, again and again."""
        self._beat("running", force=True)
        try:
            while not self._owner.stop_wanted():
                rows = self._follower.poll()
                for part in self._let_through(self._batches(self._outlet.passed(rows))):
                    self._settle(part)
                if len(rows):
                    self._passed()
                elif self._until_idle:
                    break
                else:
                    time.sleep(POLL_S)
                self._beat("running" if len(rows) else "idle")
            state = "stopped" if self._owner.stop_wanted() else "idle"
        except (_StopError, _HeldError) as ended:
            state = "held" if isinstance(ended, _HeldError) else "stopped"
        self._save(self.progress)
        self._beat(state, force=True)

    def _batches(self, rows: pa.Table) -> Iterator[Messages]:
        names = pc.unique(rows["query"]).to_pylist()
        wanted = [name for name in names if self._delivery.takes(name)]
        chosen = rows.filter(
            pc.is_in(rows["query"], value_set=pa.array(wanted, pa.string()))
        )
        for start in range(0, len(chosen), self._delivery.batch_rows):
            yield messages(
                chosen.slice(start, self._delivery.batch_rows), self._delivery.stream
            )

    def _let_through(self, batches: Iterator[Messages]) -> Iterator[Messages]:
        """The parts of batches, each when its days may go."""
        if self._gate is None:
            yield from batches
            return
        for batch in batches:
            start = 0
            while start < len(batch):
                rows = batch.rows.slice(start)
                count = self._gate.open_rows(rows)
                if count:
                    yield batch.part(start, start + count)
                    start += count
                else:
                    self._hold(self._gate.why_held(rows))

    def _hold(self, why: str) -> None:
        """Waits for a day to be judged, or mended."""
        if why != self._held:
            self._held = why
            self._alert("warning", f"changes are held: {why}")
        if self._until_idle:
            raise _HeldError
        self._wait(POLL_S, "held")

    def _passed(self) -> None:
        """All up to the follower's place is settled; it is noted with the next batch, or at the end."""
        position, seq = self._follower.place
        self.progress = replace(self.progress, position=position, seq=seq)

    def _settle(self, batch: Messages) -> None:
        """Sends a batch; when it returns, every change is acknowledged or a dead letter, and that is noted."""
        dead = list(self._sent(batch))
        self._owner.check()
        fresh = self._dead.append(batch, dead, now_us=now_us())
        if fresh and not self._refusing:
            self._refusing = True
            self._alert("warning", f"changes are dead letters: {dead[0][1].details}")
        last = batch.rows.slice(len(batch) - 1)
        self._save(
            replace(
                self.progress,
                position=last["position"][0].as_py(),
                seq=last["seq"][0].as_py(),
                delivered=self.progress.delivered + len(batch) - len(dead),
                dead_letters=self.progress.dead_letters + fresh,
            )
        )

    def _sent(self, batch: Messages) -> Iterator[Dead]:
        """Sends a batch in order, and gives those that are refused; a refused part is sent again in two halves."""
        parts = [(0, len(batch))]
        while parts:
            start, end = parts.pop()
            outcome = self._try(batch.part(start, end))
            if isinstance(outcome, Taken):
                refused = [
                    (start + place, refusal) for place, refusal in outcome.refused
                ]
            elif end - start > 1:
                middle = (start + end) // 2
                parts += [(middle, end), (start, middle)]
                continue
            else:
                refused = [(start, outcome.refusal)]
            for place, refusal in refused:
                if not self._delivery.dead_letter:
                    raise FairwayError(
                        f"delivery {self._delivery.name!r}: {batch.ids[place]} was refused: {refusal.details}",
                        hint="mend the receiver, or set dead_letter = true",
                    )
                yield place, refusal

    def _try(self, part: Messages) -> Taken | Refused:
        """Sends changes until the receiver says that it has them, or never will."""
        failures, since_s, alerted = 0, time.monotonic(), False
        while True:
            self._check()
            outcome: Outcome = self._receiver.send(part)
            if not isinstance(outcome, Failed):
                if alerted:
                    self._alert("info", "its receiver takes changes again")
                return outcome
            failures += 1
            self.failed_tries += 1
            failing_s = time.monotonic() - since_s
            _LOG.warning("delivery %s: %s", self._delivery.name, outcome.reason)
            if self._until_idle and failing_s >= self._delivery.retry_max_s:
                raise TransientError(
                    f"delivery {self._delivery.name!r}: {outcome.reason}",
                    hint="nothing is lost",
                )
            if failing_s >= ALERT_S and not alerted:
                alerted = True
                self._alert(
                    "error",
                    f"its receiver has taken nothing for {failing_s:.0f} s: {outcome.reason}",
                )
            self._pause(failures, outcome)

    def _pause(self, failures: int, outcome: Failed) -> None:
        """Waits before the next try: longer after each failure, or as long as the receiver asks."""
        self._wait(
            pause_s(
                failures,
                most_s=self._delivery.retry_max_s,
                asked_s=outcome.after_s,
                chance=self._chance,
            )
        )

    def _wait(self, seconds: float, state: str = "retrying") -> None:
        end_s = time.monotonic() + seconds
        while (left := end_s - time.monotonic()) > 0:
            self._check()
            self._beat(state)
            time.sleep(min(left, _SLICE_S))

    def _check(self) -> None:
        if self._owner.stop_wanted():
            raise _StopError
        self._owner.check()

    def _save(self, progress: Progress) -> None:
        self._owner.check()
        write_progress(self._owner.folder, progress)
        self.progress = progress

    def _beat(self, state: str, *, force: bool = False) -> None:
        if not force and time.monotonic() - self._beaten_s < BEAT_S:
            return
        self._beaten_s = time.monotonic()
        self._owner.counts["changes"] = self.progress.delivered - self.first.delivered
        self._owner.counts["rejects"] = (
            self.progress.dead_letters - self.first.dead_letters
        )
        stream = read_status(self._home.stream(self._delivery.stream))
        end = stream.position if stream is not None else 0
        place = self.progress.position + 1
        self._owner.beat(
            state, position=place, end_position=max(end, place), now_ts=None, force=True
        )

    def _alert(self, level: str, text: str) -> None:
        label = f"delivery {self._delivery.name}"
        tell(self._home, label, text, level=level)
