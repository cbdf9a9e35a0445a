"""The driver's side of tasks that stay: who is heard, who is not, and what becomes of shards (SPEC S2, S5)."""

import threading
import time

import pytest

from st_common.errors import LogError
from st_common.spark.exchange import wire
from st_common.spark.exchange.crew import Crew, Plan
from st_common.spark.exchange.wire import connected

pytestmark = pytest.mark.timeout(120)
PLAN = Plan(number=1, start=0, end=3, committed=-1)


@pytest.fixture
def crew():
    made = Crew(2, "127.0.0.1")
    yield made
    made.close()


class Worker:
    """A task by hand: it answers steps when it is told to, and notes what it was asked."""

    def __init__(self, crew, *, answers=True, stands_in=False):
        self.wire = connected(crew.address, crew.keys)
        self.asked, self._answers = [], answers
        hello = {"is": "hello", "name": "w"}
        self.wire.send(hello | {"stands_in": stands_in})
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self):
        try:
            while True:
                head, _ = self.wire.receive()
                self.asked.append((head["do"], tuple(head.get("shards", ()))))
                if head["do"] == "step" and self._answers:
                    self.answer(head)
        except (OSError, EOFError):
            self.wire.close()
            self.asked.append(("closed", ()))

    def answer(self, head):
        for shard in head["shards"]:
            said = {"is": "stepped", "shard": shard, "plan": head["plan"]}
            self.wire.send(said, f"{shard} of {head['plan']}".encode())


def soon(holds):
    until_s = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until_s
        time.sleep(0.005)


@pytest.mark.spec("S5")
def test_one_task_has_all_shards_until_another_comes(crew):
    first = Worker(crew)
    assert crew.step(PLAN) == [b"0 of 1", b"1 of 1"]
    second = Worker(crew)
    soon(lambda: not crew.listen() and len(crew.names) == 2)
    assert crew.step(Plan(number=2, start=3, end=4, committed=-1)) == [
        b"0 of 2",
        b"1 of 2",
    ]
    assert ("drop", (1,)) in first.asked
    assert second.asked[:2] == [("take", (1,)), ("step", (1,))]


@pytest.mark.spec("S5")
def test_who_stands_in_has_all_shards_until_it_is_relieved(crew):
    standing = Worker(crew, stands_in=True)
    soon(lambda: not crew.listen() and len(crew.names) == 1)
    assert not crew.can_relieve
    workers = [Worker(crew), Worker(crew)]
    soon(lambda: not crew.listen() and len(crew.names) == 3)
    assert crew.step(PLAN) == [b"0 of 1", b"1 of 1"]
    assert all(not worker.asked for worker in workers), "it has what it knows"
    assert crew.can_relieve
    crew.relieve()
    later = Plan(number=2, start=3, end=4, committed=-1)
    assert crew.step(later) == [b"0 of 2", b"1 of 2"]
    soon(lambda: standing.asked[-2:] == [("end", ()), ("closed", ())])
    assert not crew.can_relieve
    assert crew.is_whole


@pytest.mark.spec("S2", "S5")
def test_what_a_task_was_asked_is_asked_of_another_when_it_breaks_off(crew):
    lost = Worker(crew, answers=False)
    results = []
    stepping = threading.Thread(target=lambda: results.append(crew.step(PLAN)))
    stepping.start()
    soon(lambda: ("step", (0, 1)) in lost.asked)
    Worker(crew)
    lost.wire.close()
    stepping.join(timeout=60)
    assert results == [[b"0 of 1", b"1 of 1"]]


@pytest.mark.spec("S2", "S5")
def test_a_silent_task_is_left_out_and_what_it_says_later_is_not_heard(
    crew, monkeypatch
):
    """As one whose process was stopped: it goes on when others have its shards."""
    silent = Worker(crew, answers=False)
    soon(lambda: not crew.listen() and len(crew.names) == 1)
    monkeypatch.setattr(wire, "SILENT_S", 0.2)
    results = []
    stepping = threading.Thread(target=lambda: results.append(crew.step(PLAN)))
    stepping.start()
    soon(lambda: ("closed", ()) in silent.asked)
    monkeypatch.setattr(wire, "SILENT_S", 60.0)
    Worker(crew)
    stepping.join(timeout=60)
    assert results == [[b"0 of 1", b"1 of 1"]]
    with pytest.raises(OSError, match="Bad file descriptor"):
        silent.answer({"shards": [0], "plan": 1})


@pytest.mark.spec("S2")
def test_what_a_task_cannot_use_ends_the_stream_by_its_own_error(crew):
    worker = Worker(crew, answers=False)
    worker.wire.send({"is": "failed", "kind": "LogError", "why": "segment 3 is gone"})
    with pytest.raises(LogError, match="segment 3 is gone"):
        crew.step(PLAN)


@pytest.mark.spec("S5")
def test_whoever_waits_for_tasks_hears_that_no_more_will_come(crew):
    def check():
        raise RuntimeError("the job has ended")

    with pytest.raises(RuntimeError, match="the job has ended"):
        crew.step(PLAN, check)
