"""Several values of each group at once: what a row adds to each, and the JSON object that a group shows (SPEC G9).

    SELECT line, COUNT(*) AS n, AVG(speed) AS v .. GROUP BY line

    members        amounts: n  v            the group 7 shows
    a, line 7      1  4                     {"line":"7","n":2,"v":5.0}
    b, line 7      1  6

What is remembered of rows (those of windows, and rows that another query asks about) keeps these amounts as one text,
a JSON list of texts, for the values of different queries are of different number and kind.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.operators.aggregate.as_json import text_of_row
from st_common.operators.expressions import evaluation as expressions
from st_common.operators.expressions.fields import TYPES
from st_common.operators.state.numbering import Numbering
from st_common.operators.state.targets import NO_PARTNER
from st_common.operators.turn.flags import Several
from st_common.operators.turn.turn import Turn
from st_common.query.binding import PARTNER
from st_common.query.grammar.words import quoted
from st_common.query.plan import AS_JSON, COUNTS, Value

_GROUP = "name of the group"


class Asked(Protocol):
    """Fixes, or rows, that expressions are asked about; answers in their order."""

    def __len__(self) -> int:
        """How many."""

    def numbers(self, text: str) -> np.ndarray:
        """The values of an expression as float64[n], NaN for null."""

    def known(self, text: str) -> np.ndarray:
        """Where an expression is not null; bool[n]."""

    def texts(self, text: str) -> tuple[np.ndarray, pa.Array]:
        """int64[n], places among the texts that come with it, -1 for null."""


Said = tuple[np.ndarray, np.ndarray]
"""Values of groups (float64[n], NaN for null), and the numbers of what they show (int64[n])."""


def same_values(one: Said, other: Said) -> np.ndarray:
    """Whether groups have the same value and show the same; bool[n]."""
    value, other_value = one[0], other[0]
    same = (value == other_value) | (np.isnan(value) & np.isnan(other_value))
    both: np.ndarray = same & (one[1] == other[1])
    return both


def by_aggregate(turn: Turn, query: np.ndarray) -> Iterator[tuple[Several, np.ndarray]]:
    """The different aggregates with several values, each with the places of the rows of its queries.

    Args:
        turn: the run.
        query: int64[n], the query of each row.
    """
    of_query = turn.known.several
    used = np.unique(query)
    mine = used[of_query[used] != None]  # noqa: E711 - element by element
    for spec in dict.fromkeys(of_query[mine]):
        yield spec, np.flatnonzero(np.isin(query, mine[of_query[mine] == spec]))


def width_of(turn: Turn, query: np.ndarray) -> int:
    """How many values the aggregates of some queries (int64[n]) have at most; 0 where all have one alone."""
    return max((len(spec.values) for spec, _ in by_aggregate(turn, query)), default=0)


def columns_of(
    values: Sequence[Value], of: Asked
) -> list[tuple[np.ndarray, pa.Array | None]]:
    """What fixes or rows add to each value.

    Returns:
        For each value float64[n], NaN for null; where different values are counted, or values are shown as JSON, they
        are places among the texts that stand beside them.
    """
    return [_column_of(value, of) for value in values]


def _column_of(value: Value, of: Asked) -> tuple[np.ndarray, pa.Array | None]:
    if value.function in AS_JSON and value.argument is not None:
        is_known = of.known(value.argument)  # what fails is noted by its own text
        codes, texts = of.texts(text_of_row(value))
        return np.where(is_known & (codes >= 0), codes, np.nan), texts
    if value.function == "count_distinct":
        codes, texts = of.texts(value.argument or "object")
        return np.where(codes < 0, np.nan, codes), texts
    if value.argument is None:
        return np.ones(len(of)), None
    if value.function == "count":
        return np.where(of.known(value.argument), 1.0, np.nan), None
    return of.numbers(value.argument), None


def amounts_of(
    turn: Turn, query: np.ndarray, of: Asked, point: np.ndarray
) -> np.ndarray:
    """What fixes or rows add to several values of queries.

    Args:
        turn: the run.
        query: int64[p], numbers of queries.
        of: the fixes or rows.
        point: int64[p], places among them.

    Returns:
        float64[p, w], NaN for null and where a query has fewer values; w is 0 where none has several.
    """
    amounts = np.full((len(query), width_of(turn, query)), np.nan)
    for spec, mine in by_aggregate(turn, query):
        for place, (values, texts) in enumerate(columns_of(spec.values, of)):
            some = values[point[mine]]
            if texts is not None and spec.values[place].function in AS_JSON:
                some = _numbered(turn, some, texts)
            amounts[mine, place] = some
    return amounts


def _numbered(turn: Turn, places: np.ndarray, texts: pa.Array) -> np.ndarray:
    """The numbers of texts as partners, by their places (float64[n], NaN for null); likewise."""
    numbers, known = places.copy(), np.flatnonzero(~np.isnan(places))
    used, at = np.unique(places[known].astype(np.int64), return_inverse=True)
    numbers[known] = turn.numbering.partners_of(texts.take(pa.array(used)))[at]
    return numbers


def packed_texts(
    columns: Sequence[tuple[np.ndarray, pa.Array | None]], point: np.ndarray
) -> pa.Array:
    """What some fixes or rows (int64[p]) add, as one text each: `["1","4.0",null]`; string[p]."""
    named = {
        f"c{at}": _as_texts(values[point], texts)
        for at, (values, texts) in enumerate(columns)
    }
    text = f"CAST(to_json([{', '.join(named)}]) AS VARCHAR)"
    return expressions.evaluated([text], pa.table(named))[0].cast(pa.string())


def _as_texts(values: np.ndarray, texts: pa.Array | None) -> pa.Array:
    """Amounts as texts that say them exactly, null for NaN."""
    is_null = np.isnan(values)
    if texts is None:
        return pa.array(values, mask=is_null).cast(pa.string())
    places = np.where(is_null, 0, values).astype(np.int64)
    return texts.take(pa.array(places, mask=is_null))


def unpacked(turn: Turn, query: np.ndarray, text: np.ndarray) -> np.ndarray:
    """The amounts of rows whose texts `packed_texts` gave.

    Args:
        turn: the run.
        query: int64[n], the query of each row.
        text: int64[n], the number of the text among the partners; of rows of other queries any number.

    Returns:
        float64[n, w], NaN for null and where a query has fewer values; w is 0 where none has several.
    """
    amounts = np.full((len(query), width_of(turn, query)), np.nan)
    for spec, mine in by_aggregate(turn, query):
        different, at = np.unique(text[mine], return_inverse=True)
        texts = turn.numbering.partners.ids.take(pa.array(different))
        for place, column in enumerate(_unpacked_columns(turn, spec, texts)):
            amounts[mine, place] = column[at]
    return amounts


def _unpacked_columns(
    turn: Turn, spec: Several, texts: pa.Array
) -> Iterator[np.ndarray]:
    """What texts say for each value of an aggregate; float64, NaN for null."""
    (lists,) = expressions.evaluated(
        ["from_json(t, '[\"VARCHAR\"]')"], pa.table({"t": texts})
    )
    for place, value in enumerate(spec.values):
        said = pc.list_element(lists, place)
        if value.function != "count_distinct" and value.function not in AS_JSON:
            yield said.cast(pa.float64()).to_numpy(zero_copy_only=False)
            continue
        encoded = said.dictionary_encode()
        codes = encoded.indices.cast(pa.float64()).to_numpy(zero_copy_only=False)
        is_json = value.function in AS_JSON
        yield _numbered(turn, codes, encoded.dictionary) if is_json else codes


def names_of_groups(
    numbering: Numbering,
    keys: Sequence[str],
    of: Asked,
    point: np.ndarray,
    partner: np.ndarray | None,
    tags: Mapping[str, tuple[np.ndarray, pa.Array]] = MappingProxyType({}),
) -> np.ndarray:
    """The numbers of the names of groups with several keys, such as `["7","free",null]`; int64[p].

    Args:
        numbering: gives numbers.
        keys: the expressions of the keys.
        of: the fixes or rows.
        point: int64[p], places of fixes or rows.
        partner: int64[p], the numbers of their partners; None where a partner is a column as any other.
        tags: the values of keys about features: int64[p], places among the texts beside them, -1 for null.
    """
    columns = []
    for text in keys:
        if text in tags:
            columns.append(tags[text])
        elif text == PARTNER and partner is not None:
            columns.append((partner, numbering.partners.ids))
        else:
            codes, texts = of.texts(text)
            columns.append((codes[point], texts))
    codes = np.stack([codes for codes, _ in columns])
    different, at = np.unique(codes, axis=1, return_inverse=True)
    pairs = zip(different, (texts for _, texts in columns), strict=True)
    codes_of = [(np.where(code < 0, np.nan, code), texts) for code, texts in pairs]
    names = packed_texts(codes_of, np.arange(different.shape[1]))
    numbers: np.ndarray = numbering.partners_of(names)[np.ravel(at)]
    return numbers


def shown(
    numbering: Numbering,
    spec: Several,
    group: np.ndarray,
    values: np.ndarray,
    texts: Mapping[int, pa.Array] = MappingProxyType({}),
) -> np.ndarray:
    """What groups show, as numbers of texts among the partners; int64[n].

    Args:
        numbering: gives numbers.
        spec: the aggregate.
        group: int64[n], the numbers of their names.
        values: float64[n, v], NaN for null. What is not finite has no number in JSON: it is null there, too.
        texts: by their places the values that are JSON already, string[n] each.
    """
    columns = {_GROUP: numbering.partners.ids.take(pa.array(group))}
    parts = [
        (name, text) for (name, _), text in zip(spec.keys, _keys(spec), strict=True)
    ]
    kinds = [_KIND.format(text) for _, text in parts]
    for place, value in enumerate(spec.values):
        known = np.isfinite(values[:, place])
        numbers = pa.array(values[:, place], mask=~known)
        columns[f"c{place}"] = texts.get(place, numbers)
        text = _form_of(value).format(place)
        parts.append((value.name, text))
        kind = _KIND_OF_JSON if value.function in AS_JSON else _KIND
        kinds.append(kind.format(text))
    if spec.nested:  # whoever asks about the rows asks for the types of what is shown
        parts.append((TYPES, f"[{', '.join(kinds)}]"))
    text = expressions.objects_of(parts)
    (rendered,) = expressions.evaluated([text], pa.table(columns))
    return numbering.partners_of(rendered.cast(pa.string()))


def _form_of(value: Value) -> str:
    """How a value stands in JSON, by the number of its column."""
    if value.function in AS_JSON:
        return "CAST(c{} AS JSON)"
    return "CAST(c{} AS BIGINT)" if value.function in COUNTS else "c{}"


def _keys(spec: Several) -> list[str]:
    """Expressions for the keys of a group, by its name."""
    name = quoted(_GROUP)
    if len(spec.keys) != 1:
        return [
            f"json_extract_string({name}, '$[{at}]')" for at in range(len(spec.keys))
        ]
    if spec.by_partner:
        return [f"NULLIF({name}, 'NULL')"]  # that of objects without a feature
    inner = f"replace({name}[2:-2], '''''', '''')"
    is_null, is_quoted = f"{name} = 'NULL'", f"starts_with({name}, '''')"
    return [
        f"CASE WHEN {is_null} THEN NULL WHEN {is_quoted} THEN {inner} ELSE {name} END"
    ]


def keys_of_names(spec: Several, names: pa.Array) -> list[pa.Array]:
    """The keys of groups by their names (string[n]): string[n] of each, null for null."""
    table = pa.table({_GROUP: names})
    return [key.cast(pa.string()) for key in expressions.evaluated(_keys(spec), table)]


_KIND = "typeof({})"
_KIND_OF_JSON = (
    "CASE json_type({}) WHEN 'BOOLEAN' THEN 'BOOLEAN' WHEN 'DOUBLE' THEN 'DOUBLE'"
    " WHEN 'BIGINT' THEN 'DOUBLE' WHEN 'UBIGINT' THEN 'DOUBLE' ELSE 'VARCHAR' END"
)
"""The type that whoever asks about rows sees; a list is its text."""


def nothing_of(turn: Turn, query: np.ndarray, group: np.ndarray) -> Said:
    """What queries without keys tell of no rows: the values (float64[n]) and the numbers of what is shown (int64[n]).

    Args:
        turn: the run.
        query: int64[n].
        group: int64[n], the number of the name of the one group.
    """
    value, text = np.zeros(len(query)), np.full(len(query), NO_PARTNER)
    for spec, mine in by_aggregate(turn, query):
        nothing = [0.0 if one.function in COUNTS else np.nan for one in spec.values]
        values = np.tile(nothing, (len(mine), 1))
        empty = pa.array(["[]"] * len(mine))
        lists = {
            place: empty
            if one.function == "collect"
            else pa.nulls(len(mine), pa.string())
            for place, one in enumerate(spec.values)
            if one.function in AS_JSON
        }
        value[mine] = values[:, 0] if len(nothing) == 1 else np.nan
        text[mine] = shown(turn.numbering, spec, group[mine], values, lists)
    return value, text
