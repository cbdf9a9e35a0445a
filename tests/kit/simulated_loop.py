"""An event loop for an actor of a simulated machine: real coroutines, of which a seed decides when each goes on.

Whoever waits for time gets it at once, by the loop's own clock; threads that a coroutine waits for run in its place,
some steps of the loop later. Where nothing is ready the actor stops, and others of the machine run.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from tests.kit.simulated import World

_PAUSES_S = (0.0, 0.0, 0.0, 0.001, 0.02)


class _Turns(selectors.SelectSelector):
    """Watches no descriptor: lets others of the machine run instead, and time pass."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world, self.now_s, self.is_over = world, 0.0, False

    def select(self, timeout: float | None = None) -> list[Any]:
        """Nothing ever comes from outside."""
        if not self.is_over:
            self.world.pause()
        self.now_s += timeout or 0.0
        return []


class _Loop(asyncio.SelectorEventLoop):
    """A loop whose clock is the one of its turns."""

    def __init__(self, turns: _Turns) -> None:
        self._turns = turns
        super().__init__(turns)
        self.set_exception_handler(lambda _loop, _context: None)

    def time(self) -> float:
        """Seconds that have passed for this process."""
        return self._turns.now_s


def run(world: World, main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Runs what an actor does; one that is killed does nothing more that others could see."""
    turns = _Turns(world)
    loop = _Loop(turns)
    try:
        loop.run_until_complete(main())
    finally:
        turns.is_over = True
        with suppress(RuntimeError):  # who ended it may have asked it to stop as well
            loop.run_until_complete(asyncio.sleep(0))
        loop.run_until_complete(_given_up(asyncio.all_tasks(loop)))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


async def _given_up(tasks: set[asyncio.Task[Any]]) -> None:
    """Ends what is left of a process."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def inline(world: World) -> Callable[..., Coroutine[Any, Any, Any]]:
    """What stands for `asyncio.to_thread`: the work is done by the actor itself, a while later."""

    async def to_thread(work: Callable[..., Any], *given: Any, **named: Any) -> Any:
        await asyncio.sleep(world.rng.choice(_PAUSES_S))
        done = work(*given, **named)
        await asyncio.sleep(world.rng.choice(_PAUSES_S))
        return done

    return to_thread
