"""Damage that a stream gets over by itself is told all the same: else nobody brings the file back (SPEC S2)."""

import logging

from st_common.config.home import Home
from st_common.operations.alerts import tell_once

_LOG = logging.getLogger(__name__)


def tell_damage(home: Home, stream: str, text: str) -> None:
    """Writes a line on stderr and an alert, unless one with this text was written before, by whatever process.

    Engine, archive and Spark's tasks all come upon the same damage, and once more after each start.

    Args:
        home: the home folder, which keeps the alerts.
        stream: the stream that gets over the damage.
        text: which file is damaged, and what to do; it is also the key by which repetitions are known.
    """
    if tell_once(home, stream, text):
        _LOG.warning("%s", text)
