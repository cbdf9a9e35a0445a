"""Lines, quotes, UTF-8 and arrays, found in bytes without a loop, against loops."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.formats.csv_records import (
    RECORD_LIMIT,
    Dialect,
    count_fields,
    is_closed,
    join_lines,
)
from st_common.formats.ndjson_chunks import elements, is_array
from st_common.formats.spans import (
    Spans,
    byte_places,
    count_lines,
    lines,
    odd_lines,
    utf8_faults,
)

BYTES = st.lists(
    st.sampled_from(
        [b"a", b"\n", b"\r", b"\r\n", b"\xef\xbb\xbf", b"\xc3\xa9", b"\xff"]
    )
).map(b"".join)
COMMA = Dialect(",", '"')


def buffer(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


def pieces(spans: Spans) -> list[bytes]:
    return [
        spans.buffer[start:end].tobytes()
        for start, end in zip(spans.starts, spans.ends, strict=True)
    ]


def slow_lines(data: bytes) -> list[bytes]:
    stripped = [
        re.sub(rb"^(\xef\xbb\xbf)+", b"", line).removesuffix(b"\r")
        for line in data.split(b"\n")
    ]
    return [line for line in stripped if line]


@given(BYTES)
def test_lines(data: bytes):
    found = lines(buffer(data))
    assert pieces(found) == found.texts().to_pylist() == slow_lines(data)
    assert found.texts(limit=2).to_pylist() == [line[:2] for line in slow_lines(data)]
    if b"\xef" not in data:
        blank = (
            b"\n\n" in data or b"\n\r\n" in data or data.startswith((b"\n", b"\r\n"))
        )
        if data.count(b"\r") == data.count(b"\r\n"):
            assert count_lines(buffer(data), blank=blank or not data) == len(
                slow_lines(data)
            )


@given(BYTES, st.data())
def test_some_lines_with_their_line_ends_are_the_same_lines_again(
    data: bytes, draws: st.DataObject
):
    data = re.sub(
        rb"\r(?!\n)", b"r", data
    )  # with a carriage return inside no record is read
    found = lines(buffer(data))
    which = np.array(
        draws.draw(st.lists(st.booleans(), min_size=len(found), max_size=len(found))),
        bool,
    )
    again = b"".join(found.with_line_ends(which).to_pylist())
    assert slow_lines(again) == [
        line for line, taken in zip(slow_lines(data), which, strict=True) if taken
    ]


@given(BYTES)
def test_counting_a_byte_in_lines(data: bytes):
    places = byte_places(buffer(data), ord("a"))
    found = lines(buffer(data))
    assert found.count(places).tolist() == [
        line.count(b"a") for line in slow_lines(data)
    ]
    assert found.holding(places).tolist() == [b"a" in line for line in slow_lines(data)]
    whole = data.removesuffix(b"\n").split(b"\n") if data else []
    assert odd_lines(buffer(data), ord("a")).tolist() == [
        line.count(b"a") % 2 == 1 for line in whole
    ]


@given(
    st.lists(st.binary(max_size=6) | st.text(max_size=3).map(str.encode)).map(
        b"\n".join
    )
)
def test_a_line_has_a_fault_when_python_cannot_decode_it(data: bytes):
    spans = lines(buffer(data))
    expected = []
    for line in pieces(spans):
        try:
            line.decode()
            expected.append(False)
        except UnicodeDecodeError:
            expected.append(True)
    assert spans.holding(utf8_faults(buffer(data))).tolist() == expected


@pytest.mark.parametrize("start", range(0, 0x11_0000, 0x8000))
def test_all_of_unicode_has_no_fault_and_surrogates_have(start: int):
    for code in (start, start + 0x7FF, start + 0x7FFF):
        data = chr(code).encode("utf-8", "surrogatepass")
        assert bool(len(utf8_faults(buffer(data)))) == (0xD800 <= code < 0xE000)
        assert len(utf8_faults(buffer(data[:-1]))) > 0 or len(data) == 1 or code < 0x80


# --- quotes ---

FIELD = st.text('ab,"\n', max_size=5)


@given(st.lists(st.lists(FIELD, min_size=2, max_size=3), max_size=5))
def test_well_formed_records_are_found_again(records: list[list[str]]):
    written = [
        ",".join('"' + field.replace('"', '""') + '"' for field in record)
        for record in records
    ]
    found = join_lines(lines(buffer("\n".join(written).encode())), COMMA)
    assert [piece.decode() for piece in pieces(found)] == written
    assert is_closed(found, COMMA).all()
    if records:
        assert count_fields(found, COMMA).tolist() == [
            len(record) for record in records
        ]


@pytest.mark.parametrize(
    ("data", "records"),
    [
        ('a,"b\nc,d\ne,f', ['a,"b', "c,d", "e,f"]),
        ('a,"b\nc,"d",e\nf,g', ['a,"b', 'c,"d",e', "f,g"]),
        ('a,"b\n"c",d\n"e",f', ['a,"b', '"c",d', '"e",f']),
        ('a,"b\nc",d\ne,"f\ng",h', ['a,"b\nc",d', 'e,"f\ng",h']),
        ('a,"b\nc,"d\ne",f', ['a,"b', 'c,"d\ne",f']),
        ('5" nail,b\na,"b\nc",d', ['5" nail,b', 'a,"b\nc",d']),
        ('a,"b\n\nc"', ['a,"b\n\nc"']),
    ],
)
def test_an_unclosed_quote_costs_its_own_line_only(data: str, records: list[str]):
    assert [
        piece.decode()
        for piece in pieces(join_lines(lines(buffer(data.encode())), COMMA))
    ] == records


def test_a_quoted_field_of_several_lines_is_bounded():
    within, beyond = (
        b'a,"' + b"x\n" * (size // 2) + b'",b'
        for size in (RECORD_LIMIT - 10, RECORD_LIMIT)
    )
    assert len(join_lines(lines(buffer(within)), COMMA)) == 1
    assert len(join_lines(lines(buffer(beyond)), COMMA)) > 1


@pytest.mark.parametrize(
    "dialect",
    [Dialect(";", "'"), Dialect("|", "^"), Dialect("\t", "\\"), Dialect("]", "[")],
)
def test_any_characters_can_delimit_and_quote(dialect: Dialect):
    d, q = dialect.delimiter, dialect.quote
    text = f"a{d}{q}b{q}{q}{d}{q}{d}c\n{q}open{d}d".encode()
    found = join_lines(lines(buffer(text)), dialect)
    assert is_closed(found, dialect).tolist() == [True, False]
    assert count_fields(found.select(np.array([0])), dialect).tolist() == [3]


# --- arrays ---

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text('a"\\[]{},: \u00e9', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text('k"\\,', max_size=2), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(
    st.lists(st.dictionaries(st.text(max_size=2), JSON, max_size=3), max_size=5),
    st.sampled_from([None, 2]),
    st.booleans(),
)
def test_elements_of_an_array_are_what_json_reads(
    values: list, indent: int, ascii_only: bool
):
    data = (
        " " + json.dumps(values, indent=indent, ensure_ascii=ascii_only) + "\n"
    ).encode()
    assert is_array(data)
    assert [json.loads(piece) for piece in pieces(elements(buffer(data)))] == values


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b'[{"a":1},{"b"', [b'{"a":1}', b'{"b"']),
        (b"[{}] {}", [b"{}", b" {}"]),
        (b"[]", []),
        (b"[ ]\n", []),
        (b"[{},]", [b"{}", b""]),
        (b"[{}]]", [b"{}", b"]"]),
        (b'[{"a":"]', [b'{"a":"]']),
    ],
)
def test_a_broken_array_gives_pieces_all_the_same(data: bytes, found: list[bytes]):
    assert is_array(data)
    assert pieces(elements(buffer(data))) == found


@pytest.mark.parametrize("head", [b"", b"[", b"[1]", b'{"a":[{}]}', b'["a"]', b"x[{"])
def test_other_bytes_are_no_array_of_objects(head: bytes):
    assert not is_array(head)
