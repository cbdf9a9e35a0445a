"""Server-sent events: no text of others is structure in them, as browsers read them and as our client does."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from st_common.client.http_events import events_of, lines_of
from st_common.errors import ConfigError
from st_common.server.event_text import CHANGE, comment, event, place_of_id
from tests.kit.effort import tries

pytestmark = pytest.mark.spec("S8")

TEXTS = st.text(st.characters(exclude_categories=())) | st.sampled_from(
    [
        "\n\nevent: change\ndata: {}\n\n",
        "\r",
        "\r\n",
        "\u2028",
        "\u2029",
        "\x00",
        "\x85",
    ]
)
PLACES = st.tuples(st.integers(0, 2**62 // 10), st.integers(0, 2**31 - 1))


def as_browsers_read(content):
    """Events by the rules of the HTML standard, 9.2.6: (id, kind, data)."""
    events, data, kind, known = [], [], "", ""
    for line in re.split("\r\n|\r|\n", content.decode("utf-8", "replace")):
        if not line:
            if data:
                events.append((known, kind or "message", "\n".join(data)))
            data, kind = [], ""
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                data.append(value)
            elif name == "event":
                kind = value
            elif name == "id" and "\0" not in value:
                known = value
    return events


def as_our_client_reads(content, cuts=()):
    parts = [content[a:b] for a, b in zip((0, *cuts), (*cuts, None), strict=True)]
    found = events_of(lines_of(parts))
    return [(one.id, one.kind, one.data) for one in found if one.kind]


@tries(100)
@given(texts=st.lists(TEXTS, max_size=4), at=PLACES, cuts=st.lists(st.integers(0, 200)))
@example(texts=['"\n\nevent: change\ndata: {"forged": 1}\n\n'], at=(1, 2), cuts=[])
def test_each_event_is_read_as_one_whatever_is_in_its_data(texts, at, cuts):
    written = [text.encode("utf-8", "replace") for text in texts]
    content = b"".join(event(CHANGE, data, at) for data in written)
    said = [re.sub("\r\n|\r", "\n", data.decode()) for data in written]
    expected = [(f"{at[0]}/{at[1]}", "change", data) for data in said]
    assert as_browsers_read(content) == expected
    assert as_our_client_reads(content, sorted(cuts)) == expected


@tries(100)
@given(text=TEXTS)
def test_a_comment_is_nothing_but_a_comment(text):
    assert as_browsers_read(comment(text)) == []
    assert as_our_client_reads(comment(text)) == []


@tries(50)
@given(at=PLACES, name=TEXTS)
@example(at=(7, 1_999_999_999), name="a")
@example(at=(7, 2**31 - 1), name="a")
def test_ids_are_read_back_and_those_of_earlier_versions_too(at, name):
    own = f"{at[0]}/{at[1]}"
    assert place_of_id(own) == at
    assert place_of_id(f"zone/1/{name.replace('/', '%2F')}/~/{own}") == at


@pytest.mark.parametrize(
    "text",
    ["", "1", "1/", "/1", "a/b", "1/x", "-1/1", "\u0661/1", "1/\u00b2", "1/2\n", "9" * 30 + "/1", "1/9999999999"],
    ids=str,
)  # fmt: skip
def test_what_is_no_id_is_refused(text):
    with pytest.raises(ConfigError, match="is the id of no event"):
        place_of_id(text)


def test_an_event_that_is_cut_is_none():
    content = event(CHANGE, b"{}", (1, 1)) + event(CHANGE, b"[1, 2]", (1, 2))
    for end in range(len(content) - 1):
        assert len(as_our_client_reads(content[:end])) <= 1
    assert len(as_our_client_reads(content)) == 2
