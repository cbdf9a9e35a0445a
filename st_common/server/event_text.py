r"""Server-sent events as bytes: whatever is in them stays inside, because this is the one place that writes them.

    id: 16777216/3
    event: change
    data: {"id": "zone/1/ship%0A/~/16777216/3", "object": "ship\n", ..}

An id is two numbers, a position and a seq: no text of others stands in it.
"""

import re

from st_common.answers.follow import LAST_SEQ
from st_common.answers.follow import Place as At
from st_common.errors import ConfigError

CHANGE, END = "change", "end"
"""Kinds of events: a change, and why nothing more comes."""
_ENDS = re.compile(rb"\r\n|\r|\n")
_ID = re.compile(r"(?:.*/)?([0-9]{1,18})/([0-9]{1,10})", re.DOTALL)
"""An id; those of versions before had other parts in front."""


def event(kind: str, data: bytes, at: At | None = None) -> bytes:
    """One event.

    Args:
        kind: `CHANGE` or `END`.
        data: a line of JSON; of more lines each is one of the same event.
        at: where a change stands; None: whoever resumes does so after the event before.
    """
    own = b"" if at is None else b"id: %d/%d\n" % at
    return own + b"event: %s\ndata: %s\n\n" % (
        kind.encode(),
        _ENDS.sub(b"\ndata: ", data),
    )


def comment(text: str, at: At | None = None) -> bytes:
    """A line that clients pass over; with a place, whoever has nothing else resumes there."""
    own = b"" if at is None else b"id: %d/%d\n" % at
    return own + b": %s\n\n" % _ENDS.sub(b"\n: ", text.encode("utf-8", "replace"))


def place_of_id(text: str) -> At:
    """Where the change with an id stands.

    Raises:
        ConfigError: it is no such id.
    """
    known = _ID.fullmatch(text)
    if known is None or int(known[2]) > LAST_SEQ:
        raise ConfigError(
            f"{text[:100]!r} is the id of no event", hint="POSITION/SEQ, as events say"
        )
    return int(known[1]), int(known[2])
