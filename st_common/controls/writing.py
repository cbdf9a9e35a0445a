"""Control rows as bytes: a line of JSON each. Nobody else writes them.

The form of each kind is that of the first version that had it, so that a log is the same whoever writes it.
"""

import json
from collections.abc import Iterable, Sequence
from json.encoder import encode_basestring_ascii as quoted

from st_common.controls.rows import (
    Clock,
    ControlRow,
    Drop,
    Fail,
    Follow,
    LayerVersion,
    Reading,
    Register,
    Registration,
    Replace,
)


def to_bytes(row: ControlRow) -> bytes:
    r"""The row as a line of a control segment, with its newline.

    >>> to_bytes(Clock(ts_us=5))
    b'{"op": "clock", "ts": 5}\n'
    """
    if isinstance(row, Registration):
        plan_json = json.dumps(row.plan, separators=(",", ":"))
        return registration_to_bytes(
            type(row),
            query=row.query,
            version=row.version,
            plan_json=plan_json,
            text=row.text,
            owner=row.owner,
            layer_version=row.layer_version,
            areas=row.areas,
            followed=row.layer if isinstance(row, Follow) else None,
            seed=row.seed if isinstance(row, Register) else None,
        )
    return f"{_text_of(row)}\n".encode()


def payload_of(rows: Iterable[ControlRow]) -> bytes:
    """The rows as the payload of a control segment, in their order; empty for no rows."""
    return b"".join(map(to_bytes, rows))


def registration_to_bytes(
    kind: type[Register | Replace | Follow],
    *,
    query: str,
    version: int,
    plan_json: str,
    text: str | None,
    owner: str | None,
    layer_version: int | None,
    areas: Sequence[str] = (),
    followed: str | None = None,
    seed: str | None = None,
) -> bytes:
    """A registration as a line of a control segment, of a plan that is JSON text already.

    So a million queries are registered without making a million plans.

    Args:
        kind: which of the three the row is.
        query: the name of the query.
        version: its version, from 1 on.
        plan_json: the plan; not checked here.
        text: the statement as it was written; None where there was none.
        owner: who registers it; None where nobody says so.
        layer_version: of the layer that it joins, the version it begins with; None without a join.
        areas: the named areas that its text calls.
        followed: the layer of a row `follow`; None in other rows.
        seed: the id of what a query knows of the log before a row `register`; None where it knows nothing.
    """
    layer = "" if layer_version is None else f',"layer_version":{layer_version}'
    named = f',"areas":{json.dumps(list(areas))}' if areas else ""
    layer += "" if followed is None else f',"layer":{quoted(followed)}'
    layer += "" if seed is None else f',"seed":{quoted(seed)}'
    return (
        f'{{"op":"{kind.op}","query":{quoted(query)},"version":{version},"plan":{plan_json},'
        f'"text":{_text_or_null(text)},"owner":{_text_or_null(owner)}{layer}{named}}}\n'
    ).encode()


def _text_of(row: ControlRow) -> str:
    match row:
        case Drop():
            return f'{{"op":"drop","query":{quoted(row.query)}}}'
        case Fail():
            about = f'"query":{quoted(row.query)},"version":{row.version}'
            return f'{{"op":"fail",{about},"why":{_text_or_null(row.why)}}}'
        case LayerVersion():
            said = {"layer": row.layer, "version": row.version}
        case Clock():
            delay = {} if row.delay_us is None else {"delay_us": row.delay_us}
            said = {"ts": row.ts_us, **delay}
        case Reading():
            said = {"reading": row.reading}
        case _:
            said = {}
    return json.dumps({"op": row.op, **said})


def _text_or_null(text: str | None) -> str:
    return "null" if text is None else quoted(text)
