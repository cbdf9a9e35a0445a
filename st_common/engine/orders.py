"""In which order the local engine tests selection and region of each query, left behind for `explain` (SPEC G10)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_common.ops.records import read_record, write_record

if TYPE_CHECKING:
    from st_common.operators.state.settings import Settings
    from st_common.operators.state.state import State

FILE = "orders.json"


def orders_of(state: "State", settings: "Settings") -> dict[str, Any]:
    """By the name of each query whose order is chosen: its version, the order, and the shares by which it was chosen.

    Empty when nothing ran yet.
    """
    from st_common.operators.runtime.compiling import order_now  # slow to import

    order = order_now(state.queries, settings)
    if order is None:
        return {}
    below = order.below
    return {
        state.queries[n].name: {
            "version": state.queries[n].version,
            "order": "select_first" if n in below else "space_first",
            "where": of.where,
            "space": of.space,
            "readings": of.readings,
        }
        for n, of in order.shares.items()
    }


def write_orders(folder: Path, orders: dict[str, Any]) -> None:
    """Replaces what is told of the stream in `folder`."""
    write_record(folder / FILE, orders)


def read_order(folder: Path, query: str, version: int) -> dict[str, Any] | None:
    """What the engine of the stream in `folder` said last of a version of a query; None when it said nothing."""
    order = (read_record(folder / FILE) or {}).get(query)
    return (
        order if isinstance(order, dict) and order.get("version") == version else None
    )
