"""How long to wait before a try is made again."""

import random

_FIRST_S = 0.25


def pause_s(
    failures: int, *, most_s: float, asked_s: float | None = None, chance: random.Random
) -> float:
    """The pause after so many failures in a row: it doubles, up to `most_s`, and a random part of it is waited.

    The randomness (the upper half of the range) keeps those that failed together from coming back together. What
    the receiver asked for is waited at least, but never more than `most_s`.
    """
    longest = min(most_s, _FIRST_S * 2.0 ** min(failures - 1, 60))
    drawn = chance.uniform(longest / 2, longest)
    return min(most_s, max(drawn, asked_s or 0.0))
