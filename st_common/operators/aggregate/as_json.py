"""Values of groups that are no numbers of their own: the first, the last, a list of different ones (SPEC G9).

What a row adds is a text, by its number among the partners. Its value stands in it as JSON, so that numbers, texts and
truth values stay what they are; before it what says which row comes first: its time, then its object.

    fix          adds to LAST(line)                                adds to COLLECT(line)
    a, 7:30:05   2026-11-23T07:30:05.000000 a <end> "10E"          "10E"
    b, 7:30:05   2026-11-23T07:30:05.000000 b <end> "4"            "4"
                 the greatest text is that of b: "4"               ["10E","4"]
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.operators.arrays.ranked import ranks_of_texts
from st_common.operators.expressions import evaluation as expressions
from st_common.operators.state.intern import Interner
from st_common.query.plan import MOST_COLLECTED, Value
from st_common.runs import is_first, is_last, ranks_of

_END = "\x01"
"""Between an object's id and its value: in JSON no such character stands."""
_WHEN = "strftime(event_ts, '%Y-%m-%dT%H:%M:%S.%f') || object || chr(1) || "
_NOT_FINITE = "('NaN', 'Infinity', '-Infinity')"


def text_of_row(value: Value) -> str:
    """The expression of the text that a row adds to a value; null where its argument is, or is not finite."""
    json = f"CAST(to_json({value.argument}) AS VARCHAR)"
    known = f"CASE WHEN {json} IN {_NOT_FINITE} THEN NULL ELSE {json} END"
    return known if value.function == "collect" else f"{_WHEN}{known}"


def reduced_texts(
    partners: Interner, value: Value, run: np.ndarray, number: np.ndarray, runs: int
) -> pa.Array:
    """What groups have of a value, as JSON.

    Args:
        partners: the texts.
        value: which one is asked.
        run: int64[n], the place of the group of each row.
        number: float64[n], the number of the text that the row adds, NaN for none.
        runs: how many groups there are.

    Returns:
        string[runs], null where no row adds anything; lists are never null.
    """
    known = np.flatnonzero(~np.isnan(number))
    numbers, code = np.unique(number[known].astype(np.int64), return_inverse=True)
    texts = partners.ids.take(pa.array(numbers)).cast(pa.string())
    if value.function == "collect":
        return _lists(texts, run[known], code, runs)
    rank = ranks_of_texts(texts)[code]
    order = np.lexsort((rank, run[known]))
    chosen = (is_first if value.function == "first" else is_last)(run[known][order])
    row = order[chosen]
    place = np.full(runs, -1)
    place[run[known][row]] = code[row]
    values = pc.replace_substring_regex(texts, f"(?s)^.*{_END}", "")
    return values.take(pa.array(place, mask=place < 0))


def _lists(texts: pa.Array, run: np.ndarray, code: np.ndarray, runs: int) -> pa.Array:
    """The different values of each group in their order, as JSON lists; where there are too many null is the last."""
    by_rank = _order_of_values(texts)
    rank = np.empty(len(by_rank), np.int64)
    rank[by_rank] = np.arange(len(by_rank))
    pairs = np.unique(np.stack([run, rank[code]]), axis=1)
    counts, nth = np.bincount(pairs[0], minlength=runs), ranks_of(is_first(pairs[0]))
    shown = nth <= MOST_COLLECTED
    items = texts.take(pa.array(by_rank[pairs[1][shown]]))
    items = pc.if_else(pa.array(nth[shown] == MOST_COLLECTED), "null", items)
    ends = np.cumsum(np.minimum(counts, MOST_COLLECTED + 1))
    lists = pa.ListArray.from_arrays(np.append(0, ends).astype(np.int32), items)
    inner = pc.binary_join(lists, ",")
    return pc.binary_join_element_wise("[", inner, "]", "")


def _order_of_values(texts: pa.Array) -> np.ndarray:
    """The places of JSON values in their order: numbers by size, all else by text; int64[n]."""
    if not len(texts):
        return np.empty(0, np.int64)
    number, text = expressions.evaluated(
        ["TRY_CAST(t AS DOUBLE)", "json_extract_string(t, '$')"],
        pa.table({"t": texts}),
    )
    numbers = number.cast(pa.float64()).to_numpy(zero_copy_only=False)
    by_text = ranks_of_texts(text.cast(pa.string()).fill_null(""))
    order: np.ndarray = np.lexsort((by_text, numbers))
    return order
