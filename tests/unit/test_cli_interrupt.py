"""Ctrl-C ends commands that go on until it, also where Python drops what it raises."""

import signal
import threading

import pytest

from st_common.cli.interrupt import until_interrupted


def test_an_interrupt_is_raised_and_known():
    before = signal.getsignal(signal.SIGINT)
    with until_interrupted() as is_over:
        assert not is_over()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert is_over()
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_that_a_destructor_drops_is_known(monkeypatch):
    dropped = []
    monkeypatch.setattr(
        "sys.unraisablehook", lambda what: dropped.append(what.exc_type)
    )

    class Ending:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    with until_interrupted() as is_over:
        Ending()
        assert is_over()
    assert dropped == [KeyboardInterrupt]


def test_another_thread_leaves_signals_as_they_are():
    before, seen = signal.getsignal(signal.SIGINT), []

    def run():
        with until_interrupted() as is_over:
            seen.append((is_over(), signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [(False, before)]
