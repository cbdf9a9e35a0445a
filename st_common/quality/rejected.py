"""The rejected records of a day, some of each reason, as people can read them."""

from dataclasses import dataclass
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc

from st_common.capture.log import Log
from st_common.home import Home
from st_common.rejects.replay import marked, rejects_of

_EXAMPLES, _SHOWN = 3, 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """The rejects of one reason.

    Attributes:
        reason: why they are no fixes.
        count: how many there are.
        again: how many of them a replay has put into the log again since.
        examples: the first three, as text, each at most 200 characters; what is no UTF-8 is escaped.
    """

    reason: str
    count: int
    again: int
    examples: tuple[str, ...]


def rejected_on(home: Home, stream: str, day: date) -> list[Rejected]:
    """The rejects of a stream that came on a day, by reason, those with the most records first.

    Args:
        home: where the table lies.
        stream: the stream.
        day: the day of the wall clock (UTC).
    """
    rows = marked(Log(home.log(stream)), rejects_of(home, stream, day=day))
    counts = rows["reason"].value_counts().to_pylist()
    counts.sort(key=lambda each: (-each["counts"], each["values"]))
    return [_of_reason(rows, each["values"]) for each in counts]


def _of_reason(rows: pa.Table, reason: str) -> Rejected:
    own = rows.filter(pc.field("reason") == reason)
    return Rejected(
        reason=reason,
        count=len(own),
        again=pc.sum(own["is_again"]).as_py(),
        examples=tuple(map(_shown, own["raw"].slice(0, _EXAMPLES).to_pylist())),
    )


def _shown(raw: bytes) -> str:
    text = raw.decode("utf-8", "backslashreplace")
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
