"""Columns of JSON records that may stand under several names."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from st_common.formats.ndjson_records import read_lines
from st_common.formats.records import Reason, Records
from st_common.formats.spans import Mask

Paths = Mapping[str, Sequence[str]]
"""By column where its value may stand; the first one that is there counts."""


def read_columns(lines: bytes, paths: Paths) -> Records:
    """The records of lines, each a JSON object, with these columns as texts."""
    each = {f"{n} {at}": path for n, of in paths.items() for at, path in enumerate(of)}
    records = read_lines(lines, each)
    fields = {
        name: pc.coalesce(*(records.fields[f"{name} {at}"] for at in range(len(of))))
        for name, of in paths.items()
    }
    return Records(fault=records.fault, fields=fields, raw=records.raw)


def without(records: Records, reasons: Mapping[Reason, Mask]) -> Records:
    """The records of which some of those without a fault have one after all.

    Args:
        records: what was read.
        reasons: which of the records without a fault have which; the first one of each counts.
    """
    fault = records.fault.copy()
    good = (fault == Reason.NONE).nonzero()[0]
    own = fault[good]
    for reason, where in reasons.items():
        own[where & (own == Reason.NONE)] = reason
    fault[good] = own
    kept = pa.array(own == Reason.NONE)
    fields = {name: values.filter(kept) for name, values in records.fields.items()}
    return Records(fault=fault, fields=fields, raw=records.raw)
