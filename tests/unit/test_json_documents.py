"""JSON documents that hold their records in a list: the key of the list is a setting."""

import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.config.streams import stream_of_table
from st_common.decode.batch import Raw, decode_all
from st_common.errors import ConfigError
from st_common.formats.registry import format_of
from tests.kit.effort import tries

STREAM = StreamSettings(
    name="buses",
    format="ndjson",
    columns=Columns(object="id", event_ts="ts", x="lon", y="lat"),
    time_unit="s",
    records="vehicles",
    max_ahead_s=None,
)
TEXTS = st.text(max_size=6)
RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.text("abc,[]{}", min_size=1, max_size=4),
            "ts": st.integers(1, 2_000_000_000),
            "lon": st.integers(-180, 180),
            "lat": st.integers(-80, 80),
            "doors": st.lists(st.fixed_dictionaries({"n": TEXTS}), max_size=2),
        }
    ),
    max_size=5,
)


def document(records, before, behind):
    return json.dumps(
        {"note": before, "vehicles": records, "next": {"vehicles": behind}}
    )


def ids(payload):
    (part,) = decode_all([Raw(payload=payload, arrival_us=0)], STREAM)
    assert len(part.decoded.rejects) == 0
    return part.decoded.fixes["object"].to_pylist()


@pytest.mark.spec("B6", "B7")
@tries(60)
@given(
    st.lists(RECORDS, min_size=1, max_size=3), TEXTS, TEXTS, st.sampled_from(["", "\n"])
)
def test_the_records_of_documents_are_those_of_their_lists(
    documents, before, behind, gap
):
    """As they come in a message, and as a file or a reply is cut into a log."""
    text = gap.join(document(one, before, behind) for one in documents).encode()
    wanted = [record["id"] for one in documents for record in one]
    assert ids(text) == wanted
    chunks = format_of("ndjson").chunks(io.BytesIO(text), STREAM, size=1 << 18)
    payloads = [one.payload(0, len(one.spans)) for one in chunks]
    assert [name for payload in payloads for name in ids(payload)] == wanted


def test_a_document_without_the_list_is_rejected_with_a_reason():
    payload = b'{"cars": [{"id": "a", "ts": 1, "lon": 1, "lat": 1}]}'
    (part,) = decode_all([Raw(payload=payload, arrival_us=0)], STREAM)
    assert len(part.decoded.fixes) == 0
    assert part.decoded.rejects["reason"].to_pylist() == ["missing_object"]


def test_only_ndjson_has_documents():
    columns = {"object": "id", "x": "x", "y": "y"}
    table = {"format": "csv", "records": "vehicles", "columns": columns}
    with pytest.raises(ConfigError, match="records has no meaning for csv"):
        stream_of_table("buses", table, Path("streams.toml"))
