"""In which order the local engine tests selection and region of each query, left behind for `explain` (SPEC G10)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_common.operations.records import read_record, write_record

if TYPE_CHECKING:
    from st_common.operators.state.settings import Settings
    from st_common.operators.state.state import State

FILE = "orders.json"


def orders_of(state: "State", settings: "Settings") -> dict[str, Any]:
    """The order in which an engine tests attribute conditions and region of each query, and why (SPEC G10).

    Args:
        state: its queries, and what is remembered of how often their conditions held.
        settings: the settings of the step.

    Returns:
        By the name of each query whose order is chosen by measurement, as JSON values: its `version`, the `order`
        (`select_first` or `space_first`), and what it was chosen by: `where` and `space`, shares of so many `readings`,
        and how many queries are `alike` in their selection.
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
            "alike": of.alike,
        }
        for n, of in order.shares.items()
    }


def write_orders(folder: Path, orders: dict[str, Any]) -> None:
    """Replaces `orders.json` in a stream's folder; `orders` is as `orders_of` gives it."""
    write_record(folder / FILE, orders)


def read_order(folder: Path, query: str, version: int) -> dict[str, Any] | None:
    """What the engine of a stream said last about one version of a query, as an entry of `orders_of`.

    Args:
        folder: the stream's folder.
        query: the query's name.
        version: the version; what was said about another one does not count.

    Returns:
        None when the engine said nothing about it.
    """
    order = (read_record(folder / FILE) or {}).get(query)
    return (
        order if isinstance(order, dict) and order.get("version") == version else None
    )
