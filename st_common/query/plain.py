"""Queries that ask for a rectangle that stands still and nothing else but a condition: most of a million are.

Nothing in such a plan can exclude anything else in it, and its JSON and its control rows are written and read without
looking at every part that a plan may have. All else goes the long way; both say the same, which a law holds.
"""

import io
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii as quoted

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from st_common.query.plan import VERSION, Plan
from st_common.query.region import Box

_LEAST_ROWS = 64  # below, reading columns takes longer than reading rows
_CORNERS = ("minx", "miny", "maxx", "maxy")
_INSIDE = pa.struct(
    [("kind", pa.string()), *((name, pa.float64()) for name in _CORNERS)]
)
_PLAN = pa.struct([("v", pa.int64()), ("stream", pa.string()), ("inside", _INSIDE)])
_ROW = pa.schema(
    [
        ("op", pa.string()),
        ("query", pa.string()),
        ("version", pa.int64()),
        ("plan", _PLAN),
        ("text", pa.string()),
        ("owner", pa.string()),
    ]
)
_ALWAYS = ("op", "query", "version", "text", "owner")


def is_plain(plan: Plan) -> bool:
    """Whether a plan has a rectangle that stands still, perhaps a condition, and no other part."""
    return (
        type(plan.inside) is Box
        and plan.neighbours is None
        and plan.join is None
        and plan.pairs is None
        and plan.window is None
        and plan.frame is None
        and plan.compare is None
        and plan.aggregate is None
        and not plan.transforms
        and not plan.columns
        and not plan.valid_until
        and plan.order == "auto"
        and plan.emit == "changes"
    )


def plan_text(plan: Plan) -> str:
    """The plan as JSON without blanks."""
    box = plan.inside
    if (
        not is_plain(plan)
        or type(box) is not Box
        or not math.isfinite(box.minx + box.miny + box.maxx + box.maxy)
    ):
        return json.dumps(plan.to_json(), separators=(",", ":"))
    where = "" if plan.where is None else f',"where":{quoted(plan.where)}'
    return (
        f'{{"v":{VERSION},"stream":{quoted(plan.stream)},"inside":{{"kind":"box","minx":{box.minx!r},'
        f'"miny":{box.miny!r},"maxx":{box.maxx!r},"maxy":{box.maxy!r}}}{where}}}'
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainRows:
    """The registrations in a control segment as columns, a row of the segment each; `corners` are float64 [n, 4]."""

    names: list[str]
    versions: list[int]
    texts: pa.Array
    owners: pa.Array
    streams: list[str]
    corners: np.ndarray

    def __len__(self) -> int:
        return len(self.names)

    def plan_texts(self) -> Iterator[str]:
        """The plans as JSON, as `json.dumps` writes it."""
        quoted_streams = {name: quoted(name) for name in set(self.streams)}
        for stream, (minx, miny, maxx, maxy) in zip(
            self.streams, self.corners.tolist(), strict=True
        ):
            yield (
                f'{{"v": {VERSION}, "stream": {quoted_streams[stream]}, "inside": {{"kind": "box", "minx": {minx!r}, '
                f'"miny": {miny!r}, "maxx": {maxx!r}, "maxy": {maxy!r}}}}}'
            )


def plain_rows(payload: bytes) -> PlainRows | None:
    """A control segment as columns; None when it has a row that is anything but a registration of a rectangle.

    So whoever gets None reads row by row, and says what is wrong with one.
    """
    rows = payload.count(b"\n")
    if (
        rows < _LEAST_ROWS
        or not _is_a_row_a_line(payload, rows)
        or b'"kind":"box"' not in payload
    ):
        return None
    if not _is_text(payload):
        return None
    try:
        found = pj.read_json(
            io.BytesIO(payload),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(payload) + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=_ROW, unexpected_field_behavior="error"
            ),
        ).combine_chunks()
    except pa.ArrowInvalid:
        return None
    return _checked(found) if len(found) == rows else None


def _is_text(payload: bytes) -> bool:
    """Whether all bytes are UTF-8: Arrow looks at the bytes of a text when somebody asks for it, not when it reads."""
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_a_row_a_line(payload: bytes, rows: int) -> bool:
    return (
        payload.startswith(b"{")
        and payload.endswith(b"}\n")
        and payload.count(b"}\n{") == rows - 1
    )


def _checked(found: pa.Table) -> PlainRows | None:
    """The columns; None when something is missing, or is not what rows of rectangles have in the present version."""
    plans = found["plan"].combine_chunks()
    if any(found[name].null_count for name in _ALWAYS) or plans.null_count:
        return None
    version, stream, inside = plans.flatten()
    if version.null_count or stream.null_count or inside.null_count:
        return None
    kind, *corners = inside.flatten()
    values = np.column_stack(
        [corner.to_numpy(zero_copy_only=False) for corner in corners]
    )
    known = (
        pc.all(pc.equal(found["op"], "register")).as_py()
        and pc.all(pc.equal(version, VERSION)).as_py()
    )
    if not known or kind.null_count or not pc.all(pc.equal(kind, "box")).as_py():
        return None
    if any(corner.null_count for corner in corners) or not np.isfinite(values).all():
        return None
    return PlainRows(
        names=found["query"].to_pylist(),
        versions=found["version"].to_pylist(),
        texts=found["text"].combine_chunks(),
        owners=found["owner"].combine_chunks(),
        streams=stream.to_pylist(),
        corners=values,
    )
