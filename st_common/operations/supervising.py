"""Who looks after a home for as long as he lives: a lease of the whole home, which ticks of others respect."""

from pathlib import Path

from st_common.config.home import Home
from st_common.operations.lease import Lease, current, is_held


def supervising(home: Home) -> Path:
    """The folder of that lease."""
    return home.root / "supervisor"


def holder_of(home: Home, mine: Lease | None, *, now_us: int) -> str:
    """Who else looks after the home for as long as he lives, for people; "" where nobody does.

    Args:
        home: the home folder.
        mine: the lease of who asks; None: he has none.
        now_us: now, us since 1970.
    """
    if is_mine(home, mine, now_us=now_us):
        return ""
    holder = current(supervising(home))
    if holder is None:
        return ""
    return f"process {holder.owner.pid} on {holder.owner.host}"


def is_mine(home: Home, mine: Lease | None, *, now_us: int) -> bool:
    """Whether somebody with this lease, or without one, may tick: nobody else looks after the home.

    Args:
        home: the home folder.
        mine: the lease of who asks; None: he has none.
        now_us: now, us since 1970.
    """
    holder = current(supervising(home))
    if holder is None or not is_held(holder, now_us=now_us):
        return True
    return mine is not None and mine.epoch == holder.epoch
