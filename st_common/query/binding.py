"""Whether expressions fit a stream: DuckDB binds them to an empty table of its attributes, nothing is evaluated."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from st_common.query import near_columns
from st_common.query.connections import OfThread
from st_common.query.fix_columns import BUILTINS
from st_common.query.grammar.words import quoted
from st_common.query.pair_columns import of_feature, of_pair

if TYPE_CHECKING:
    import duckdb

PARTNER = "partner"
_TYPES = {"string": "VARCHAR", "double": "DOUBLE", "long": "BIGINT", "bool": "BOOLEAN"}
_NUMBERS = frozenset(
    {
        "TINYINT",
        "SMALLINT",
        "INTEGER",
        "BIGINT",
        "HUGEINT",
        "UTINYINT",
        "USMALLINT",
        "UINTEGER",
        "UBIGINT",
        "UHUGEINT",
        "FLOAT",
        "DOUBLE",
    }
)
_AT_ONCE = 100  # expressions in one SELECT: binding them together is five times as fast
_of_thread = OfThread()

Columns = tuple[tuple[str, str], ...]
Kind = Literal["boolean", "number", "text", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The type of an expression, or why it has none."""

    type: str = ""
    error: str = ""

    @property
    def kind(self) -> Kind:
        """What the type is good for."""
        if self.type in _NUMBERS or self.type.startswith("DECIMAL"):
            return "number"
        return (
            "boolean"
            if self.type == "BOOLEAN"
            else "text"
            if self.type == "VARCHAR"
            else "other"
        )

    def fits(self, needs: str) -> bool:
        """Whether it is of a kind that is needed: one of `Kind`, `any`, or `plain`: all but `other`."""
        is_plain = needs == "plain" and self.kind != "other"
        return is_plain or needs in ("any", self.kind)


def columns_of(
    attributes: Mapping[str, str],
    *,
    partner: bool = False,
    pair: bool = False,
    tags: Iterable[str] = (),
    near: bool = False,
) -> Columns:
    """The columns that an expression may use, with their types in DuckDB; attributes as the settings declare them.

    Those of a `pair` are also those of its other object, and what is measured between the two (see `pair_columns`).
    Of a fix and a feature it is the `tags`: all those names are a feature's, whatever it has. With `near` it is what a
    member is among the nearest.
    """
    own = {
        name: _TYPES[kind]
        for name, kind in attributes.items()
        if name.lower() not in BUILTINS
    } | dict(BUILTINS)
    beside = {PARTNER: "VARCHAR"} if partner else {}
    both = dict(of_pair(own.items())) if pair else {}
    place = near_columns.TYPES if near else {}
    return tuple({**own, **beside, **both, **dict(of_feature(tags)), **place}.items())


def bound(expressions: Sequence[str], columns: Columns) -> list[Bound]:
    """The type of each expression over these columns."""
    types: list[Bound] = []
    for start in range(0, len(expressions), _AT_ONCE):
        part = expressions[start : start + _AT_ONCE]
        types += _bound_together(part, columns) or [
            _bound(text, columns) for text in part
        ]
    return types


@lru_cache(maxsize=4096)
def _bound(text: str, columns: Columns) -> Bound:
    import duckdb

    try:
        return Bound(type=_types([text], columns)[0])
    except duckdb.Error as error:
        return Bound(error=said(error))


def _bound_together(texts: Sequence[str], columns: Columns) -> list[Bound] | None:
    import duckdb

    if len(texts) == 1:
        return None
    try:
        return [Bound(type=kind) for kind in _types(texts, columns)]
    except duckdb.Error:
        return None  # one of them: who binds them one by one sees which


def _types(texts: Sequence[str], columns: Columns) -> list[str]:
    chosen = ", ".join(f"({text}) AS c{number}" for number, text in enumerate(texts))
    statement = f"SELECT {chosen} FROM {_table(columns)}"  # noqa: S608 - checked expressions
    relation = _of_thread.connection(chosen).sql(statement)
    return [str(kind) for kind in relation.types]


def _table(columns: Columns) -> str:
    """The name of the empty table with these columns, made when this thread has none yet."""
    tables = _of_thread.tables
    if columns not in tables:
        fields = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns)
        statement = f"CREATE TABLE t{len(tables)} ({fields})"
        _of_thread.connection(statement).execute(statement)
        tables[columns] = f"t{len(tables)}"
    return tables[columns]


def said(error: "duckdb.Error") -> str:
    """The first line of DuckDB's message, in our words where it speaks of what the reader has not written."""
    line = str(error).partition("\n")[0]
    kind, colon, text = line.partition(" Error: ")
    text = text if colon and " " not in kind else line
    text = text.removesuffix(
        " You might need to add explicit type casts."
    ).removesuffix(".")
    text = text.partition(" Use TRY(")[0].partition(
        " when casting from source column "
    )[0]
    text = text.replace(" - an explicit cast is required", "").replace("_LITERAL", "")
    return text[:1].lower() + text[1:]
