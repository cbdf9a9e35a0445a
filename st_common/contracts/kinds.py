"""The physical types that a contract may name, and what they are in ODCS, Arrow and Spark."""

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One physical type.

    Attributes:
        logical: its logical type in ODCS.
        arrow: its Arrow type.
        spark: the class of Spark that holds it.
    """

    logical: str
    arrow: pa.DataType
    spark: str


KINDS: dict[str, Kind] = {
    "string": Kind(logical="string", arrow=pa.string(), spark="StringType"),
    "bigint": Kind(logical="integer", arrow=pa.int64(), spark="LongType"),
    "int": Kind(logical="integer", arrow=pa.int32(), spark="IntegerType"),
    "tinyint": Kind(logical="integer", arrow=pa.int8(), spark="ByteType"),
    "double": Kind(logical="number", arrow=pa.float64(), spark="DoubleType"),
    "boolean": Kind(logical="boolean", arrow=pa.bool_(), spark="BooleanType"),
    "date": Kind(logical="date", arrow=pa.date32(), spark="DateType"),
    "timestamp": Kind(
        logical="timestamp", arrow=pa.timestamp("us", tz="UTC"), spark="TimestampType"
    ),
    "binary": Kind(logical="string", arrow=pa.binary(), spark="BinaryType"),
    "map<string,string>": Kind(
        logical="object", arrow=pa.map_(pa.string(), pa.string()), spark="MapType"
    ),
}

# What a stream may declare as an attribute, and how its table stores it.
ATTRIBUTE_KINDS = {
    "string": "string",
    "double": "double",
    "long": "bigint",
    "bool": "boolean",
}


def kind_of(arrow_type: pa.DataType) -> str | None:
    """The name in `KINDS` of an Arrow type; None when no contract can name it, such as a float32.

    A dictionary is of its values' kind, and the large and view forms of a type are the type: the same values, held in
    another way.
    """
    if pa.types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
    if pa.types.is_large_string(arrow_type) or arrow_type == pa.string_view():
        arrow_type = pa.string()
    elif pa.types.is_large_binary(arrow_type) or arrow_type == pa.binary_view():
        arrow_type = pa.binary()
    elif (
        pa.types.is_map(arrow_type)
        and kind_of(arrow_type.key_type) == kind_of(arrow_type.item_type) == "string"
    ):
        return "map<string,string>"
    return next(
        (name for name, kind in KINDS.items() if kind.arrow == arrow_type), None
    )
