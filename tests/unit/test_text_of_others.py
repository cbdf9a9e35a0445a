"""Text from outside is never structure: whatever writes lines, events, topics, metrics or pages escapes it."""

import csv
import io
import json
import logging
import re
import unicodedata
from html.parser import HTMLParser
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.answers.commits import APP, engine_commits
from st_common.answers.csv_rows import csv_lines
from st_common.answers.json_rows import json_line
from st_common.cli import output
from st_common.client.result import placed
from st_common.config.home import Home, checked_name
from st_common.contracts import load_contract
from st_common.delivery.message import change_ids, messages
from st_common.delivery.mqtt import topics_of
from st_common.errors import ConfigError, one_line
from st_common.log_lines import log_in_lines
from st_common.server.changes import Hubs
from st_common.server.http_metrics import HttpMetrics
from st_common.server.recording import Recorder, write_report
from st_common.tables.recovery import committed_at, damage, whole_version
from st_common.tables.tail import Tail
from tests.kit.effort import tries

pytestmark = pytest.mark.spec("S8")

SCHEMA = load_contract("changes").arrow_schema()
EVERY = [
    chr(code)
    for code in range(0x110000)
    if not 0xD800 <= code < 0xE000
    and (code >> 16 in (0, 1, 14) or not 0x400 <= code & 0xFFFF < 0xFC00)
]
"""Characters that a text of Arrow can hold: all of the planes that hold more than ideographs and private ones, of
the others those at their ends, where those lie that are no characters."""
SIGNS = st.sampled_from(
    "\0\t\n\r\x0b\x0c\x1b\x1c\x7f\x85\u2028\u2029\ufeff\ufffe%/~+#$<>&\"'\\=-@,;{} "
)
TEXTS = st.text(SIGNS | st.characters(exclude_categories=["Cs"]), max_size=20)
ANY_TEXTS = st.text(SIGNS | st.characters(exclude_categories=()), max_size=20)
FORGING = 'a"\n\nevent: change\ndata: {"forged": 1}\n\n'
NEVER = frozenset(
    [*(chr(code) for code in (*range(32), *range(0x7F, 0xA0))), "\u2028", "\u2029"]
)


def rows_of(objects, query="zone"):
    rest = {"event_ts": 0, "event_date": 0, "sign": 1, "cause": "enter"}
    rest |= {"query": query, "query_version": 1, "partner": None, "position": 1}
    same = {field.name: rest.get(field.name) for field in SCHEMA}
    columns = {name: [value] * len(objects) for name, value in same.items()}
    columns |= {"object": objects, "seq": list(range(len(objects)))}
    return pa.table(columns, schema=SCHEMA)


def test_each_character_of_unicode_stays_in_its_line_id_and_topic():
    found = messages(rows_of(EVERY), "ships")
    lines = [line.decode() for line in found.lines]
    text = "\n".join(lines)
    assert text.splitlines() == lines
    assert NEVER.isdisjoint(set(text) - {"\x7f", "\n"})
    objects = [row["object"] for row in json.loads(f"[{','.join(lines)}]")]
    assert objects == EVERY
    assert NEVER.isdisjoint("".join(found.ids))
    assert [unquote(own.split("/")[2]) for own in found.ids] == EVERY
    assert len(set(found.ids)) == len(EVERY)
    topics = topics_of("f/{query}/{object}", "d", found)
    levels = [topic.removeprefix("f/zone/") for topic in topics]
    signs = set("".join(levels))
    assert NEVER.isdisjoint(signs)
    assert not set("/+#$") & signs
    assert not any(ord(sign) & 0xFFFE == 0xFFFE for sign in signs)
    assert [unquote(level) for level in levels] == EVERY


@tries(100)
@given(value=ANY_TEXTS, key=ANY_TEXTS)
def test_a_line_of_json_is_one_line_that_can_be_written_and_read_back(value, key):
    line = json_line({key: value, "number": float("inf")})
    assert len(line.encode().decode().splitlines()) == 1
    assert json.loads(line) == {key: value, "number": "inf"}


@tries(100)
@given(rows=st.lists(st.lists(TEXTS, min_size=2, max_size=2), min_size=1, max_size=4))
def test_rows_of_csv_are_read_back_by_whoever_reads_csv(rows):
    text = csv_lines(rows)
    assert list(csv.reader(io.StringIO(text, newline=""))) == rows
    read = pa_csv.read_csv(
        io.BytesIO(("a,b\n" + text).encode()),
        parse_options=pa_csv.ParseOptions(newlines_in_values=True),
        convert_options=pa_csv.ConvertOptions(
            column_types={"a": pa.string(), "b": pa.string()}
        ),
    )
    assert [list(row.values()) for row in read.to_pylist()] == rows


def test_each_character_of_unicode_is_read_back_from_csv():
    rows = [[name, f"{name}="] for name in EVERY]
    assert list(csv.reader(io.StringIO(csv_lines(rows), newline=""))) == rows


@tries(100)
@given(text=ANY_TEXTS)
def test_a_line_for_people_is_one_and_moves_no_cursor(text):
    line = one_line(text)
    kinds = {unicodedata.category(sign) for sign in line}
    assert not kinds & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert line == text or not text.isprintable()


def test_a_table_for_people_has_a_line_for_each_row(capsys):
    table = pa.table({"object": [FORGING, "\x1b[2J\x9b", "b\rc"], "n": [1, 2, 3]})
    output.write(table, "table")
    output.write_growing([table], "table")
    output.write_said(f"{FORGING} entered", {}, json_lines=False)
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) == len(shown.split("\n")) - 1 == 9
    assert NEVER.isdisjoint(shown.replace("\n", ""))


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_table_for_programs_is_read_back(capsys, form):
    names = [FORGING, "\x1b[2J\x9b", "b\rc", "\u2028", '"', "=1+1"]
    output.write(pa.table({"object": names}), form)
    shown = capsys.readouterr().out
    if form == "csv":
        read = [row[0] for row in csv.reader(io.StringIO(shown, newline=""))][1:]
    else:
        read = [json.loads(line)["object"] for line in shown.splitlines()]
    assert read == names


def test_what_is_logged_is_a_line_and_its_trace_is_indented(monkeypatch, capsys):
    logger = logging.Logger("alone")  # noqa: LOG001 - pytest handles all others
    monkeypatch.setattr(logging.lastResort, "formatter", None)
    log_in_lines()
    logger.warning("an object %s\x1b", "a\nWRONG: forged")
    error = ValueError("b\nWRONG: forged\u2028WRONG: forged")
    logger.warning("it failed", exc_info=error)
    said = capsys.readouterr().err
    first, second, *trace = said.splitlines()
    assert first == r"an object a\nWRONG: forged\x1b"
    assert second == "it failed"
    assert all(line.startswith("  ") for line in trace)


@tries(50)
@given(names=st.lists(TEXTS, unique=True, max_size=4))
def test_labels_of_metrics_are_what_they_are(names):
    hubs = Hubs(Home("/nowhere"))
    for name in names:
        hubs.of(name).state.dropped[name] += 2
    lines = HttpMetrics(hubs).text().decode().split("\n")
    label = r'"((?:[^"\\\n]|\\["\\n])*)"'
    sample = re.compile(
        rf"[a-z_]+_dropped_total\{{reason={label},stream={label}\}} 2\.0"
    )
    found = [match for match in map(sample.fullmatch, lines) if match]
    plain = {r"\n": "\n", r"\"": '"', r"\\": "\\"}
    read = [
        tuple(
            re.sub(r"\\.", lambda sign: plain[sign[0]], part) for part in one.groups()
        )
        for one in found
    ]
    assert sorted(read) == sorted((name, name) for name in names)
    known = re.compile(r"|# (HELP|TYPE) \S+ .*|\S+(\{.*\})? [0-9.e+-]+", re.DOTALL)
    assert all(known.fullmatch(line) for line in lines)


class Scripts(HTMLParser):
    """What a browser would take for elements of a page, and the texts of its scripts."""

    def __init__(self, page):
        super().__init__(convert_charrefs=False)
        self.begun, self.scripts = [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.begun.append((tag, tuple(name for name, _ in attrs)))

    def handle_data(self, data):
        if self.begun and self.begun[-1][0] == "script":
            self.scripts.append(data)


def explored(text):
    shown = {
        "object": ["a", "b"],
        "line": [text, "x"],
        "x": [1.0, 2.0],
        "y": [1.0, 2.0],
    }
    return placed(pa.table(shown), "EPSG:4326").explore().page


@tries(60)
@given(text=TEXTS | st.sampled_from(["</script><script>x()", "<!--<script>", "]]>"]))
def test_a_map_of_a_notebook_has_no_element_that_a_text_makes(text):
    page, plain = Scripts(explored(text)), Scripts(explored("x"))
    assert page.begun == plain.begun
    data = re.search(r"const data = (?:/\*DATA\*/ )?(\{.*\});", "".join(page.scripts))
    assert json.loads(data[1])["columns"]["line"] == [text, "x"]


@tries(40)
@given(text=TEXTS | st.sampled_from(["</script><script>x()", "<!--<script>", "]]>"]))
def test_a_report_has_no_element_that_a_text_makes(tmp_path_factory, text):
    from datetime import UTC, datetime

    folder, when = tmp_path_factory.mktemp("report"), datetime(2026, 1, 1, tzinfo=UTC)
    pages = []
    for one in (text, "x"):
        recorder = Recorder.__new__(Recorder)
        recorder.replies = {f"/page/object/s/{one}": {"body": one}}
        write_report(folder / "r.html", recorder, since=when, until=when, made=when)
        pages.append(Scripts((folder / "r.html").read_bytes().decode()))
    assert pages[0].begun == pages[1].begun


@tries(200)
@given(text=ANY_TEXTS)
def test_a_name_that_is_taken_is_one_of_a_file_in_its_folder(text):
    if re.fullmatch(r"[a-z][a-z0-9_-]{0,62}", text, re.ASCII):
        assert checked_name(text, "stream") == text
        return
    with pytest.raises(ConfigError) as refused:
        checked_name(text, "stream")
    assert len(str(refused.value).splitlines()) == 1


def test_ids_of_kafka_records_are_bytes_of_one_text():
    own = change_ids(rows_of([FORGING, "\0"])).to_pylist()
    assert [one.encode().isascii() for one in own] == [True, True]
    assert own[1] == "zone/1/%00/~/1/1"


@pytest.mark.parametrize("sign", ["\u2028", "\x85", "\u2029", "\x1c"], ids=ascii)
def test_a_table_whose_statistics_hold_an_end_of_a_line_is_whole_and_read(
    tmp_path, sign
):
    from deltalake import CommitProperties, Transaction, write_deltalake

    table = tmp_path / "changes"
    for version in (1, 2):
        write_deltalake(
            table,
            pa.table({"object": [f"a{sign}b"], "position": [version]}),
            mode="append",
            commit_properties=CommitProperties(
                app_transactions=[Transaction(APP, version)]
            ),
        )
    assert whole_version(table) == 1
    assert committed_at(table, 1, APP) == 2
    assert damage(table) == []
    assert len(list(engine_commits(table))) == 2
    tail = Tail(table, "position")
    assert [one.rows for one in tail.added(-1)] == [1, 1]
