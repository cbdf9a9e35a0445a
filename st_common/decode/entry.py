"""Which records pass the filter at a stream's entry, evaluated by DuckDB over whole columns (docs/adr/0010)."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.asking import asking
from st_common.config.entry_filter import EntryFilter, Kind
from st_common.decode.cleaning import trimmed
from st_common.formats.numbers import Mask, as_texts, bools, doubles, mask


def passing(
    fields: Mapping[str, pa.Array], where: EntryFilter, count: int
) -> tuple[Mask, Mapping[str, int]]:
    """Which records a filter lets through: those for which all its clauses are true, so neither false nor null.

    What cannot be evaluated for a record is null for it.

    Args:
        fields: the columns of the records, missing values as null.
        where: the filter.
        count: n, the number of records.

    Returns:
        bool[n]; and of each clause that stopped some how many: those that no clause before it has stopped.
    """
    columns = [_as(fields[name], kind) for name, kind in where.columns]
    names = [f"c{number}" for number in range(len(columns))]
    listed = ", ".join(
        f"TRY({clause.sql}) AS k{number}" for number, clause in enumerate(where.clauses)
    )
    table = pa.table([*columns, np.zeros(count, bool)], names=[*names, "row"])
    with asking(closed_off=True) as connection:
        # The optimiser moves parts out of TRY: one record would fail all others.
        connection.execute("PRAGMA disable_optimizer")
        connection.register("records", table)
        answer = connection.sql(f"SELECT {listed} FROM records").to_arrow_table()  # noqa: S608 - checked by `query`
    passed, stopped = np.ones(count, bool), dict[str, int]()
    for clause, column in zip(where.clauses, answer.columns, strict=True):
        holds = mask(column.combine_chunks().cast(pa.bool_()))
        if failed := int((passed & ~holds).sum()):
            stopped[clause.text] = stopped.get(clause.text, 0) + failed
        passed &= holds
    return passed, stopped


def _as(values: pa.Array, kind: Kind) -> pa.Array:
    """Values as those of a type; null where they are missing, or none of it."""
    if pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
        none = pa.scalar(
            None, pa.string()
        )  # of a geometry it is known whether it is there
        values = pc.if_else(values.is_valid(), "", none)
        return values if kind == "string" else pa.nulls(len(values), _TYPES[kind])
    if kind == "string":
        texts = trimmed(as_texts(values))
        return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    if pa.types.is_timestamp(values.type) and kind == "double":
        micros = values.cast(pa.timestamp("us", values.type.tz)).view(pa.int64())
        return pc.divide(micros.cast(pa.float64()), 1e6)
    parsed = doubles(values) if kind == "double" else bools(values)
    absent = parsed.missing | parsed.bad
    if kind == "double":
        absent |= ~np.isfinite(parsed.values)
    return pa.array(parsed.values, mask=absent)


_TYPES: Mapping[Kind, pa.DataType] = {
    "string": pa.string(),
    "double": pa.float64(),
    "bool": pa.bool_(),
}
