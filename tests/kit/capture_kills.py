"""What killing captures of a broker has alike, whatever the broker: the stream, and what its log holds in the end."""

import json
import time
from collections import Counter
from collections.abc import Set as AbstractSet

from st_common.config.home import Home
from tests.kit.feeding import lines_of

SHIPS = "ships"
"""The stream, whose records have the number of their message as `t`."""
MOST_UNKNOWN = 200
"""So many messages may be given to a broker and not acknowledged yet."""
PAUSE_S = 0.004
_CONF = """
[streams.ships]
format = "ndjson"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
crs = "planar"
time_unit = "s"
max_ahead_s = "off"

[streams.ships.sources.feed]
"""


def configure(home: Home, source: str) -> None:
    """Writes the settings of the stream with its source.

    Args:
        home: an empty folder.
        source: lines of TOML.
    """
    (home.root / "conf").mkdir()
    text = f"{_CONF}{source}retry_max_s = 0.3\n"
    (home.root / "conf" / "streams.toml").write_text(text)


def stored(home: Home) -> Counter[int]:
    """How often each message is in the log."""
    if not home.log(SHIPS).exists():
        return Counter()
    return Counter(json.loads(line)["t"] for line in lines_of(home, SHIPS))


def stored_at_last(
    home: Home, acknowledged: AbstractSet[int], *, still_s: float
) -> Counter[int]:
    """What the log holds once it holds all that was acknowledged, or nothing more has come for so many seconds."""
    known, since_s = stored(home), time.monotonic()
    while acknowledged - known.keys() and time.monotonic() < since_s + still_s:
        now = stored(home)
        if len(now) > len(known):
            known, since_s = now, time.monotonic()
        time.sleep(0.2)
    return stored(home)
