"""What the records of a body are: how many are fixes, how many are not and why, and where the first of these stand.

{"records": 3, "accepted": 2, "rejected": 1, "reasons": {"missing_position": 1},
 "rejects": [{"record": 2, "reason": "missing_position", "line": 2, "column": 1, "offset": 40, "raw": "{..}"}]}
"""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from st_common.config.stream import StreamSettings
from st_common.decode import REJECTS_SCHEMA, Decoded, Reason
from st_common.decode.decoded import rejects_table
from st_common.errors import ConfigError
from st_common.formats.ndjson_chunks import is_array, split
from st_common.formats.registry import format_of
from st_common.formats.spans import lines
from st_common.replay.chunks import chunks
from st_common.replay.tally import Tally
from st_common.server.bodies import Body
from st_common.sources.framing import is_of_lines

_SHOWN, _SHOWN_CHARACTERS = 5, 200
_HEAD_BYTES = 1 << 10
_NO_POSITION = Reason.NO_POSITION.name.lower()
_AHEAD = Reason.AHEAD_OF_STREAM.name.lower()
_BLANK = b" \t\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the records of a body are.

    Attributes:
        records: how many there are.
        accepted: how many are fixes.
        rejected: how many could not be read.
        without_position: messages about something else than where an object is, which are neither.
        reasons: of each reason how many were rejected.
        rejects: the first few of these, each with its place in what was sent.
        mend: what is likely to mend them; "" where nothing was rejected.
    """

    records: int
    accepted: int
    rejected: int
    without_position: int
    reasons: dict[str, int]
    rejects: list[dict[str, Any]]
    mend: str

    @property
    def is_refused(self) -> bool:
        """Whether no record can be read, so that nothing is stored."""
        return self.rejected > 0 and self.rejected == self.records

    @property
    def shown(self) -> dict[str, Any]:
        """All of it as JSON values."""
        other = {"without_position": self.without_position}
        told = {"reasons": self.reasons, "rejects": self.rejects}
        return {
            "records": self.records,
            "accepted": self.accepted,
            "rejected": self.rejected,
            **(other if self.without_position else {}),
            **(told if self.rejected else {}),
        }

    @property
    def message(self) -> str:
        """What is wrong where all are rejected: `all 3 records are rejected: 2 missing_position, 1 bad_json`."""
        of_each = ", ".join(f"{count:,} {why}" for why, count in self.reasons.items())
        if self.records == 1:
            return f"the record is rejected: {next(iter(self.reasons))}"
        return f"all {self.records:,} records are rejected: {of_each}"


def verdict_of(
    body: Body, sent: bytes, stream: StreamSettings, *, ahead: Sequence[int] = ()
) -> Verdict | None:
    """What the records of a body are; None where only records that came before could say it.

    Args:
        body: the records.
        sent: the bytes that were sent.
        stream: whose records they are.
        ahead: those that are stored, from 0 on, whose event time is not believed.
    """
    if body.decoded is None:
        return None
    rejects = _all_rejects(body, body.decoded, ahead)
    others = pc.equal(rejects["reason"], _NO_POSITION)
    bad = rejects.filter(pc.invert(others))
    tally = Tally()
    tally.count(bad, len(bad), sent[:_HEAD_BYTES])
    return Verdict(
        records=body.records,
        accepted=len(body.decoded.fixes) - len(ahead),
        rejected=len(bad),
        without_position=len(rejects) - len(bad),
        reasons=dict(tally.reasons.most_common()),
        rejects=_told(bad.slice(0, _SHOWN), body, sent),
        mend=tally.mend(stream) if len(bad) else "",
    )


def _all_rejects(body: Body, decoded: Decoded, ahead: Sequence[int]) -> pa.Table:
    """The rejects of a body by their numbers in what was sent."""
    count = len(ahead)
    leaps = rejects_table(pa.array(ahead, pa.int32()), [_AHEAD] * count, [b""] * count)
    rejects = pa.concat_tables([decoded.rejects, leaps])
    if body.rows is not None:
        rows = body.rows[rejects["row"].to_numpy()].astype(np.int32)
        rejects = rejects.set_column(0, REJECTS_SCHEMA.field("row"), pa.array(rows))
    return pa.concat_tables([rejects, body.faults]).sort_by("row")


def _told(rejects: pa.Table, body: Body, sent: bytes) -> list[dict[str, Any]]:
    """Some rejects as JSON values."""
    starts = _starts(sent, body.form) if len(rejects) else None
    is_known = starts is not None and len(starts) == body.records
    told = []
    for row in rejects.to_pylist():
        raw: bytes = row["raw"]
        place = {}
        if is_known and starts is not None:
            at = int(starts[row["row"]])
            place = _place(sent, at + _breaks_at(raw, row["reason"]))
        shown = raw.decode("utf-8", "replace").strip()[:_SHOWN_CHARACTERS]
        named = {"record": row["row"] + 1, "reason": row["reason"]}
        told.append({**named, **place, **({"raw": shown} if raw else {})})
    return told


def _place(sent: bytes, offset: int) -> dict[str, int]:
    """Where a byte of a text stands: lines and characters from 1 on, bytes from 0 on."""
    line_start = sent.rfind(b"\n", 0, offset) + 1
    before = sent[line_start:offset].decode("utf-8", "replace")
    return {
        "line": sent.count(b"\n", 0, offset) + 1,
        "column": len(before) + 1,
        "offset": offset,
    }


def _breaks_at(raw: bytes, reason: str) -> int:
    """Where in a record that is no JSON it breaks, bytes from its start; 0 where that is not known."""
    if reason != "bad_json":
        return 0
    try:
        json.loads(raw)
    except json.JSONDecodeError as error:
        return len(error.doc[: error.pos].encode())
    except (ValueError, RecursionError):
        return 0
    return 0


def _starts(sent: bytes, form: StreamSettings) -> NDArray[np.int64] | None:
    """Where each record of a text begins, bytes; None where records are no pieces of a text."""
    if not is_of_lines(form) or form.records is not None:
        return None
    if not format_of(form.format).takes_objects:
        return _starts_of_lines(sent, form)
    if is_array(sent[:_HEAD_BYTES]):
        at = sent.index(b"[")
        elements, _ = split(np.frombuffer(sent[at:], np.uint8))
        return _behind_blanks(sent, elements.starts + at)
    starts = _behind_blanks(sent, lines(np.frombuffer(sent, np.uint8)).starts)
    return starts if len(starts) != 1 and not _is_one(sent) else starts[:1]


def _is_one(sent: bytes) -> bool:
    """Whether a text is one JSON value, maybe in several lines."""
    try:
        json.loads(sent)
    except (ValueError, RecursionError):
        return False
    return True


def _behind_blanks(sent: bytes, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Places moved behind the blanks that follow them."""
    buffer = np.frombuffer(sent, np.uint8)
    solid = np.flatnonzero(~np.isin(buffer, list(_BLANK)))
    if not len(solid):
        return starts
    at = np.minimum(np.searchsorted(solid, starts), len(solid) - 1)
    return np.asarray(solid[at], np.int64)


def _starts_of_lines(sent: bytes, form: StreamSettings) -> NDArray[np.int64] | None:
    try:
        cut = list(chunks(io.BytesIO(sent), form, size=2 * len(sent) + 1))
    except ConfigError:
        return None
    if len(cut) != 1 or not sent.endswith(cut[0].spans.buffer.tobytes()):
        return None
    return cut[0].spans.starts + (len(sent) - len(cut[0].spans.buffer))
