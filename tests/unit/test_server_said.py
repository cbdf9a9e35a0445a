"""What a server says on its terminal of engines that it looks after."""

import pytest

from st_common.operations.decide import Action, ActionKind, by_kind
from st_common.server.terminal import changes_of

pytestmark = pytest.mark.spec("S8")


def test_what_a_look_did_is_said_with_its_reason():
    actions = [
        Action(stream="a", kind=ActionKind.START, reason="it has not run yet"),
        Action(
            stream="b",
            kind=ActionKind.RESTART,
            reason="its process ended with code 1: disk full",
        ),
        Action(stream="c", kind=ActionKind.STOP, reason="stuck at segment 3, 9 wait"),
        Action(stream="d", kind=ActionKind.KILL, reason="not stopped in 20 s"),
        Action(stream="e", kind=ActionKind.CLEAR, reason="it has stopped"),
        Action(stream="c", kind=ActionKind.ALERT, reason="stuck: at segment 3"),
    ]
    assert list(changes_of(by_kind(actions))) == [
        "c: stuck: at segment 3",
        "a: it starts",
        "b: it starts again: its process ended with code 1: disk full",
        "c: it is asked to stop: stuck at segment 3, 9 wait",
        "d: it is killed: not stopped in 20 s",
    ]
