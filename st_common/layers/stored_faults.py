"""The table `feature_faults`: what the newest load of each layer left out or mended."""

from collections.abc import Sequence

import pyarrow as pa

from st_common import tables
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.layers.faults import Fault, in_order
from st_common.layers.table import newest_version

TABLE = "feature_faults"


def store_faults(home: Home, layer: str, version: int, faults: Sequence[Fault]) -> None:
    """Puts the faults of a load in the place of those of the load before; nothing is written where both have none."""
    path = home.table(TABLE)
    if not faults and not tables.exists(path):
        return
    columns = {
        "layer": [layer] * len(faults),
        "version": [version] * len(faults),
        "outcome": [one.outcome for one in faults],
        "fid": [one.fid for one in faults],
        "place": [one.where for one in faults],
        "reason": [one.reason for one in faults],
    }
    contract = load_contract(TABLE)
    schema = pa.schema(
        [(name, contract.arrow_schema().field(name).type) for name in columns]
    )
    rows = pa.table(columns, schema=schema)
    quoted = layer.replace("'", "''")
    tables.replace(path, rows, contract, predicate=f"layer = '{quoted}'")


def stored_faults(home: Home, layer: str) -> tuple[Fault, ...]:
    """What the newest load of a layer left out or mended; none where all is as in its file.

    Rows of a load that did not come to its end are left out.
    """
    path, newest = home.table(TABLE), newest_version(home, layer)
    if newest is None or not tables.exists(path):
        return ()
    filters = [("layer", "=", layer), ("version", "<=", newest)]
    rows = tables.read(path, filters=filters, contract=load_contract(TABLE))
    names = ("outcome", "fid", "place", "reason")
    return in_order(Fault(*(row[name] for name in names)) for row in rows.to_pylist())
