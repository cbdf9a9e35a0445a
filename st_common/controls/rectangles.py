"""Registrations of rectangles that stand still and nothing else, read as columns: most rows of a million are such.

Reading rows one by one takes ten times as long. All else goes the long way; both say the same, which a law holds.
"""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from json.encoder import encode_basestring_ascii as quoted
from typing import TYPE_CHECKING, Any, overload

from st_common.controls.rows import PLAN_VERSION, Register

if TYPE_CHECKING:  # Airflow's environment, which reads single rows, has neither
    import numpy as np
    import pyarrow as pa

_LEAST_ROWS = 64  # below, reading columns takes longer than reading rows
_CORNERS = ("minx", "miny", "maxx", "maxy")
_ALWAYS = ("op", "query", "version", "text", "owner")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rectangles(Sequence[Register]):
    """The rows of a control segment as columns; as a sequence it gives them as `Register`, one by one.

    Attributes:
        names: the name of each row's query.
        versions: its version.
        texts: string array without nulls, the statements as they were written.
        owners: string array without nulls.
        streams: the name of the stream that each query asks.
        corners: float64[n, 4], minx, miny, maxx, maxy of each rectangle, all finite.
    """

    names: list[str]
    versions: list[int]
    texts: "pa.Array"
    owners: "pa.Array"
    streams: list[str]
    corners: "np.ndarray"

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, at: int) -> Register: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Register]: ...
    def __getitem__(self, at: int | slice) -> Register | Sequence[Register]:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        corners = self.corners[at].tolist()
        return Register(
            query=self.names[at],
            version=self.versions[at],
            plan=_plan(self.streams[at], corners),
            text=self.texts[at].as_py(),
            owner=self.owners[at].as_py(),
        )

    def plan_texts(self) -> Iterator[str]:
        """The plan of each row as JSON text, exactly as `json.dumps` writes it; no plan is made on the way."""
        quoted_streams = {name: quoted(name) for name in set(self.streams)}
        for stream, (minx, miny, maxx, maxy) in zip(
            self.streams, self.corners.tolist(), strict=True
        ):
            yield (
                f'{{"v": {PLAN_VERSION}, "stream": {quoted_streams[stream]}, "inside": {{"kind": "box", '
                f'"minx": {minx!r}, "miny": {miny!r}, "maxx": {maxx!r}, "maxy": {maxy!r}}}}}'
            )


def _plan(stream: str, corners: list[float]) -> dict[str, Any]:
    inside = {"kind": "box", **dict(zip(_CORNERS, corners, strict=True))}
    return {"v": PLAN_VERSION, "stream": stream, "inside": inside}


def rectangles_of(payload: bytes) -> Rectangles | None:
    """A control segment as columns, which takes a tenth of the time; not for segments of fewer than 64 rows.

    Returns:
        None when some row is anything but the registration of a rectangle in the present version of plans, or is
        damaged. The caller then reads row by row, and can say what is wrong with one.
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
    import pyarrow as pa
    import pyarrow.json as pj

    try:
        table = pj.read_json(
            io.BytesIO(payload),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(payload) + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=_row(), unexpected_field_behavior="error"
            ),
        ).combine_chunks()
    except pa.ArrowInvalid:
        return None
    return _checked(table) if len(table) == rows else None


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


@cache
def _row() -> "pa.Schema":
    """The fields of a row that registers a rectangle."""
    import pyarrow as pa

    corners = ((name, pa.float64()) for name in _CORNERS)
    inside = pa.struct([("kind", pa.string()), *corners])
    plan = [("v", pa.int64()), ("stream", pa.string()), ("inside", inside)]
    return pa.schema(
        [
            ("op", pa.string()),
            ("query", pa.string()),
            ("version", pa.int64()),
            ("plan", pa.struct(plan)),
            ("text", pa.string()),
            ("owner", pa.string()),
        ]
    )


def _checked(table: "pa.Table") -> Rectangles | None:
    """The columns; None when something is missing, or is not what rows of rectangles have in the present version."""
    import numpy as np
    import pyarrow.compute as pc

    plans = table["plan"].combine_chunks()
    if any(table[name].null_count for name in _ALWAYS) or plans.null_count:
        return None
    version, stream, inside = plans.flatten()
    if version.null_count or stream.null_count or inside.null_count:
        return None
    kind, *corners = inside.flatten()
    values = np.column_stack(
        [corner.to_numpy(zero_copy_only=False) for corner in corners]
    )
    known = (
        pc.all(pc.equal(table["op"], Register.op)).as_py()
        and pc.all(pc.equal(version, PLAN_VERSION)).as_py()
    )
    if not known or kind.null_count or not pc.all(pc.equal(kind, "box")).as_py():
        return None
    if any(corner.null_count for corner in corners) or not np.isfinite(values).all():
        return None
    return Rectangles(
        names=table["query"].to_pylist(),
        versions=table["version"].to_pylist(),
        texts=table["text"].combine_chunks(),
        owners=table["owner"].combine_chunks(),
        streams=stream.to_pylist(),
        corners=values,
    )
