"""Records that came as a stream of Arrow: they stand in a log as such, whatever the format of the stream is.

    header      the schema, as Arrow writes it
    body        batches of rows; those of another body with the same schema may stand behind them

So nothing is written as text and read again, and a number is the number that was sent. A reset reads such a payload
anew like any other: `parquet_records.read_rows` takes it apart.
"""

import pyarrow as pa

MAGIC = b"\xff\xff\xff\xff"
"""What a message of Arrow begins with; no text in UTF-8 does."""
_END = MAGIC + b"\0\0\0\0"


def header_of(payload: bytes) -> bytes:
    """The schema that a stream of Arrow begins with, as it is written; all of one that breaks in it."""
    start = len(MAGIC) + 4
    size = int.from_bytes(payload[len(MAGIC) : start], "little")
    return payload[: start + size]


def packed(rows: pa.Table) -> tuple[bytes, bytes]:
    """The header and the body of a payload that has some rows.

    Args:
        rows: columns that each have a name of their own.
    """
    bare = rows.replace_schema_metadata(None).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, bare.schema) as writer:
        writer.write_table(bare)
    header: bytes = bare.schema.serialize().to_pybytes()
    data: bytes = sink.getvalue().to_pybytes()
    return header, data[len(header) :].removesuffix(_END)
