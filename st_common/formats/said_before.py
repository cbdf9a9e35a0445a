r"""What a payload does not say itself, as a line in front of it, so that each payload can be read alone.

    #said {"objects":{"A955D1":{"callsign":"N700NY"}},"unfinished":[],"received":""}
    MSG,3,111,11111,A955D1,..                 a position of N700NY, though no line of this payload says so

    #said {"objects":{},"unfinished":[],"received":"","ahead":[1]}
    id,t,lon,lat
    v0,1530000000,11.00,48.0
    v1,1561536000,11.01,48.0                  whoever wrote the log found this fix a year ahead of all others

Whoever writes a log writes that line; it is no record. A payload that happens to begin like this gets an empty one in
front, so that no record is ever taken for one.
"""

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

Value = str | int | float | bool
MARK = b"#said "
_LINE_END = b"\n"
_NO_SAYING = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    RecursionError,
    zlib.error,
)
"""What reading a line that is none of ours raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidBefore:
    """What was said before a payload.

    Attributes:
        objects: by object the value of each column that it has said, last first or in any order.
        unfinished: sentences of messages whose end is still to come, each with how many sentences ago it came.
        received: a line that says when the sentence behind it was received, where that one is still to come.
        owners: ids that no record says: of files, or of a source; () where records say their own.
        owner_of: which of these each record has, by its number; () where all have the first.
        document: values of the document that the records were taken from, by their paths.
        ahead: rows whose event time is too far ahead of the stream to be believed, in ascending order.
        lines: the line of each record in the file that it came from, where the file was sorted; () else.
    """

    objects: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    unfinished: Sequence[tuple[int, str]] = ()
    received: str = ""
    owners: Sequence[str] = ()
    owner_of: Sequence[int] = ()
    document: Mapping[str, Value] = field(default_factory=dict)
    ahead: Sequence[int] = ()
    lines: Sequence[int] = ()

    def ids(self, of_type: pa.DataType) -> pa.Array:
        """The objects, as ids of a type."""
        names = pa.array(list(self.objects), pa.string())
        try:
            return names.cast(of_type)
        except pa.ArrowException:
            return pa.nulls(len(names), of_type)

    def column(self, name: str, of_type: pa.DataType) -> pa.Array:
        """The values of a column, one for each object; null where it has said none, or one of another type."""
        values = [said.get(name) for said in self.objects.values()]
        try:
            return pa.array(values, of_type)
        except (pa.ArrowException, OverflowError):
            return pa.nulls(len(values), of_type)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a payload says that payloads behind it need.

    Attributes:
        asking: the objects that it has positions of.
        objects: as in `SaidBefore`: what each object says in it, the last of each column.
        unfinished: likewise: also what came before it, and has not ended in it.
        received: likewise.
    """

    asking: Sequence[str] = ()
    objects: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    unfinished: Sequence[tuple[int, str]] = ()
    received: str = ""


NOTHING = SaidBefore()


def put_in_front(payload: bytes, before: SaidBefore) -> bytes:
    """A payload with what was said before it; the payload itself where that is nothing."""
    if before == NOTHING and not payload.startswith(MARK):
        return payload
    said: dict[str, object] = {
        "objects": before.objects,
        "unfinished": before.unfinished,
        "received": before.received,
    }
    younger: dict[str, object] = {
        "owners": list(before.owners),
        "owner_of": _packed(before.owner_of),
        "document": before.document,
        "ahead": list(before.ahead),
        "lines": _packed(before.lines),
    }
    said |= {name: value for name, value in younger.items() if value}
    text = json.dumps(said, separators=(",", ":"))
    return MARK + text.encode() + _LINE_END + payload


def also(payload: bytes, more: SaidBefore) -> bytes:
    """A payload, as `put_in_front` gives it, with more in front: all that is not about objects."""
    if more == NOTHING:
        return payload
    before, records = said_before(payload)
    both = replace(
        more,
        objects=before.objects,
        unfinished=before.unfinished,
        received=before.received,
    )
    return put_in_front(records, both)


def taken_apart(payload: bytes) -> tuple[bytes, bytes]:
    """The line in front of a payload that says what was said before, with its end, and the records behind it.

    The line is empty where there is none.
    """
    if not payload.startswith(MARK):
        return b"", payload
    line, end, records = payload.partition(_LINE_END)
    return (b"", payload) if _read(line) is None else (line + end, records)


def said_before(payload: bytes) -> tuple[SaidBefore, bytes]:
    """What was said before a payload, and its records."""
    line, records = taken_apart(payload)
    return _read(line) or NOTHING, records


def _read(line: bytes) -> SaidBefore | None:
    """What a line says; None where it is none of ours."""
    try:
        said = json.loads(line.removeprefix(MARK))
        return SaidBefore(
            objects={name: dict(of.items()) for name, of in said["objects"].items()},
            unfinished=tuple((int(ago), str(text)) for ago, text in said["unfinished"]),
            received=str(said["received"]),
            owners=tuple(str(name) for name in said.get("owners", ())),
            owner_of=_unpacked(said.get("owner_of", "")),
            document=dict(said.get("document", {}).items()),
            ahead=tuple(int(row) for row in said.get("ahead", ())),
            lines=_unpacked(said.get("lines", "")),
        )
    except _NO_SAYING:
        return None


def _packed(lines: Sequence[int]) -> str:
    """Numbers as a short text: what each is more than the one before, packed."""
    if not lines:
        return ""
    steps = np.diff(np.asarray(lines, np.int64), prepend=0).astype("<i8")
    return base64.b64encode(zlib.compress(steps.tobytes(), 1)).decode()


def _unpacked(text: str) -> Sequence[int]:
    if not text:
        return ()
    steps = zlib.decompress(base64.b64decode(text))
    return tuple(np.cumsum(np.frombuffer(steps, "<i8")).tolist())
