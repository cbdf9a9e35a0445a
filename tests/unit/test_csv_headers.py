"""Exports that were put one behind another: headers in the middle of a CSV file, alike or not, and rows of units."""

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from st_common.cli import app
from st_common.config.streams import stream_of_table
from st_common.decode import decode
from st_common.replay.chunks import chunks

pytestmark = pytest.mark.spec("B6", "B7")

TABLE = {
    "format": "csv",
    "columns": {"object": "id", "event_ts": "t", "x": "lon", "y": "lat"},
    "time_unit": "s",
}
START = 1_764_000_000
ORDERS = (
    ("id", "t", "lon", "lat"),
    ("id", "t", "lat", "lon"),
    ("lat", "lon", "note", "t", "id"),
)


def exported(
    order: tuple[str, ...], numbers: list[int], *, quoted: bool = False
) -> tuple[str, list[tuple]]:
    """The text of an export in an order of columns, and the fixes that stand in it."""
    fixes = [(f"v{n % 3}", START + n, 24 + n / 1000, 60 + n / 1000) for n in numbers]
    rows = [
        dict(zip(("id", "t", "lon", "lat"), map(str, one), strict=True)) | {"note": "x"}
        for one in fixes
    ]
    header = ",".join(f'"{name}"' if quoted else name for name in order)
    lines = [header, *(",".join(row[name] for name in order) for row in rows)]
    return "".join(f"{line}\n" for line in lines), fixes


def fixes_in(text: str, size: int = 1 << 20) -> tuple[list[tuple], list[str]]:
    stream = stream_of_table("cars", TABLE, Path("streams.toml"))
    fixes, reasons = [], []
    for chunk in chunks(io.BytesIO(text.encode()), stream, size=size):
        payload = chunk.payload(0, len(chunk.spans))
        decoded = decode(payload, stream, arrival_us=2 * START * 1_000_000)
        found = decoded.fixes.to_pydict()
        times = [one // 1_000_000 for one in found["event_ts"]]
        fixes += zip(found["object"], times, found["x"], found["y"], strict=True)
        reasons += decoded.rejects["reason"].to_pylist()
    return fixes, reasons


@given(
    st.lists(
        st.tuples(st.sampled_from(ORDERS), st.lists(st.integers(0, 900), max_size=5), st.booleans()),
        min_size=1, max_size=6,
    )
)  # fmt: skip
def test_exports_in_any_orders_of_columns_are_read_each_by_its_own_header(parts):
    texts, meant = "", []
    for order, numbers, quoted in parts:
        text, fixes = exported(order, numbers, quoted=quoted)
        texts += text
        meant += fixes
    assert fixes_in(texts) == (meant, [])


def test_a_header_far_behind_is_in_force_in_the_portions_behind_it():
    first, of_first = exported(ORDERS[0], list(range(12_000)))
    second, of_second = exported(ORDERS[2], list(range(12_000)))
    assert fixes_in(first + second, size=1 << 18) == (of_first + of_second, [])


def test_values_that_are_called_as_one_column_are_no_header():
    text = "id,t,lon,lat\n" + f"id,{START},24.1,60.1\nt,{START},24.2,60.2\n"
    assert [one[0] for one in fixes_in(text)[0]] == ["id", "t"]


@pytest.mark.parametrize(
    "units", ["id,s,deg,deg", ",,°,°", "-,[s],[deg],[deg]", "text,unix,degrees,degrees"]
)
def test_a_row_of_units_has_a_reason_of_its_own(units: str):
    text, fixes = exported(ORDERS[0], [1, 2, 3])
    header, _, rest = text.partition("\n")
    assert fixes_in(f"{header}\n{units}\n{rest}") == (fixes, ["header"])


def test_a_row_without_numbers_that_names_nothing_is_a_bad_number():
    text, _ = exported(ORDERS[0], [1])
    assert fixes_in(text + f"v1,{START},n/a,n/a\n")[1] == ["bad_number"]


def checked(tmp_path: Path, text: str):
    file = tmp_path / "cars.csv"
    file.write_text(text)
    return CliRunner().invoke(app, ["check", str(file)], prog_name="fairway")


def test_check_tells_the_lines_of_headers_that_come_again(tmp_path: Path):
    first, second = exported(ORDERS[0], [1, 2, 3])[0], exported(ORDERS[0], [4, 5])[0]
    seen = checked(tmp_path, first + second)
    assert "5 of 5 records looked at are fixes" in seen.output
    assert "note: line 5 repeats the header: it is no record" in seen.output


def test_check_tells_a_header_with_other_columns(tmp_path: Path):
    first, second = exported(ORDERS[0], [1, 2, 3])[0], exported(ORDERS[1], [4, 5])[0]
    seen = checked(tmp_path, first + second)
    assert "5 of 5 records looked at are fixes" in seen.output
    assert (
        "note: line 5 is another header, id,t,lat,lon: what is behind it is read by it"
        in seen.output
    )


def test_check_counts_a_row_of_units_by_its_reason(tmp_path: Path):
    text, _ = exported(ORDERS[0], [1, 2, 3])
    seen = checked(
        tmp_path, text.replace("id,t,lon,lat\n", "id,t,lon,lat\n-,s,deg,deg\n")
    )
    assert "3 of 4 records looked at are fixes" in seen.output
    assert "1 are header" in seen.output


def test_values_that_are_numbers_of_columns_are_no_header():
    table = {
        **TABLE,
        "columns": {"object": "1", "event_ts": "4", "x": "2", "y": "3"},
    }
    stream = stream_of_table("cars", table, Path("streams.toml"))
    text = f"1,2,3,4\na,24.1,60.1,{START}\n3,4,1,2\n4,3,2,1\n"
    (chunk,) = chunks(io.BytesIO(text.encode()), stream, size=1 << 20)
    assert len(chunk.spans) == 3
