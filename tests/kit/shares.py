"""Which of five commits runs a test that takes long: all five take about as long, and between them run all."""

import zlib
from collections.abc import Mapping

COMMITS = 5
"""Of so many commits CI runs at each a share of what takes long, and so all of it once."""


def share_of_name(name: str) -> int:
    """The share of one test of many, by its name: hundreds of short ones come to the same without a measure."""
    return zlib.crc32(name.encode()) % COMMITS


def shares_of_files(seconds: Mapping[str, int]) -> dict[str, int]:
    """The share of each file that is run as a whole, longest first, each where least has come together.

    Args:
        seconds: what each file takes, in seconds of CPU; in any order.

    Example:
        {"a": 9, "b": 5, "c": 4, "d": 4, "e": 3, "f": 2} gives a 0, b 1, c 2, d 3, e 4, f 4.
    """
    sums = [0] * COMMITS
    shares = {}
    for file in sorted(seconds, key=lambda file: (-seconds[file], file)):
        shares[file] = sums.index(min(sums))
        sums[shares[file]] += seconds[file]
    return shares


def read_seconds(text: str) -> dict[str, int]:
    """What each file takes, from lines of seconds and path; a line that is not of this shape is a ValueError."""
    seconds = {}
    for line in text.splitlines():
        number, file = line.split()
        seconds[file] = int(number)
    return seconds
