"""UTF-16 that comes by a network, where nobody writes it anew: refused by its name, with or without a mark."""

from pathlib import Path

import pytest

from st_common.config.streams import stream_of_table
from st_common.replay.tally import Tally

pytestmark = pytest.mark.spec("B6")

TEXTS = {
    "csv": "id,t,x,y\na,1,2,3\nb,2,2,3\n",
    "ndjson": '{"id":"a","t":1,"x":2,"y":3}\n{"id":"b","t":1,"x":2,"y":3}\n',
}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("form", ["csv", "ndjson"])
def test_utf_16_is_named(form: str, encoding: str):
    columns = {"object": "id", "event_ts": "t", "x": "x", "y": "y"}
    table = {"format": form, "columns": columns, "time_unit": "s"}
    stream = stream_of_table("s", table, Path("streams.toml"))
    body, tally = TEXTS[form].encode(encoding), Tally()
    tally.add(body, body, stream, arrival_us=0)
    assert tally.good == 0
    assert "the text is UTF-16: convert it" in tally.mend(stream)
