"""Files in a zip, texts in UTF-16, lines that end in a carriage return: read as if they were plain ones."""

import gzip
import subprocess
import zipfile
import zlib
from pathlib import Path

import pytest

from st_common.config.streams import stream_of_table
from st_common.decode import decode
from st_common.detect.report import detect
from st_common.detect.several import detect_any
from st_common.errors import ConfigError, LayerError
from st_common.layers.geojson import read_geojson
from st_common.layers.kinds import load_kinds
from st_common.layers.unpacked import unpacked
from st_common.log.log import Log
from st_common.replay.files import replay
from st_common.replay.readable import refuse_unreadable
from st_common.replay.sample import sample_of
from st_common.replay.source import files_of, files_to_read, opened

pytestmark = pytest.mark.spec("B6", "B7")

HEADER = "id,t,x,y\n"
PLAIN = (
    HEADER
    + "Müller,2025-11-24T08:00:00Z,24.9,60.1\nb,2025-11-24T08:01:00Z,24.91,60.1\n"
)
COLUMNS = {"object": "id", "event_ts": "t", "x": "x", "y": "y"}


def stream(**keys):
    table = {"format": "csv", "columns": COLUMNS, "max_ahead_s": "off", **keys}
    return stream_of_table("buses", table, "streams.toml")


def fixes_in(payloads, settings) -> list[tuple[str, float]]:
    found = []
    for payload in payloads:
        fixes = decode(payload, settings, arrival_us=10**18).fixes
        found += zip(fixes["object"].to_pylist(), fixes["x"].to_pylist(), strict=True)
    return found


def replayed(tmp_path: Path, path: Path, settings) -> list[tuple[str, float]]:
    log = Log(tmp_path / "log")
    for each in files_of(path):
        assert not replay(log, each, settings, end_mark=False).broken
    kept = [log.read(one) for one in log.segments(0) if not one.control]
    return fixes_in(kept, settings)


def zipped(path: Path, **members: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name.replace("__", "/"), text)
    return path


BOTH = [("Müller", 24.9), ("b", 24.91)]


@pytest.mark.parametrize(
    "data",
    [
        PLAIN.encode("utf-16"),
        b"\xfe\xff" + PLAIN.encode("utf-16-be"),
        PLAIN.encode("utf-16-le"),
        PLAIN.replace("\n", "\r\n").encode("utf-16"),
        PLAIN.replace("\n", "\r").encode("utf-16"),
        gzip.compress(PLAIN.encode("utf-16"), mtime=0),
        PLAIN.replace("\n", "\r").encode(),
        PLAIN.replace("\n", "\r").encode().rstrip(b"\r"),
        gzip.compress(PLAIN.replace("\n", "\r").encode(), mtime=0),
        b"\xef\xbb\xbf" + PLAIN.replace("\n", "\r").encode(),
    ],
)
def test_check_sample_and_replay_read_the_same_whatever_the_bytes_of_a_text_are(
    tmp_path, data
):
    path = tmp_path / "a.csv"
    path.write_bytes(data)
    settings = stream()
    assert fixes_in(sample_of(path, settings).payloads, settings) == BOTH
    assert replayed(tmp_path, path, settings) == BOTH
    seen = detect(str(path))
    assert (seen.table["columns"], seen.good, seen.records) == (COLUMNS, 2, 2)


def test_what_is_no_utf_16_costs_its_own_record(tmp_path):
    path = tmp_path / "a.csv"
    lone = PLAIN.replace("b,", "\ud800,").encode("utf-16-le", "surrogatepass")
    path.write_bytes(b"\xff\xfe" + lone + "c,2025".encode("utf-16-le") + b"\x31")
    settings = stream()
    (payload,) = sample_of(path, settings).payloads
    decoded = decode(payload, settings, arrival_us=10**18)
    assert decoded.fixes["object"].to_pylist() == ["Müller"]
    assert decoded.rejects["reason"].to_pylist() == ["bad_utf8", "bad_utf8"]


def test_utf_16_is_read_in_portions_of_any_size(tmp_path):
    path = tmp_path / "a.csv"
    text = HEADER + "".join(f"ö{n}😀,2025-11-24T08:00:00Z,1,2\n" for n in range(5000))
    path.write_bytes(text.encode("utf-16"))
    for size in (1, 2, 3, 1000, 1 << 20):
        with opened(path) as file:
            data = b""
            while (portion := file.source.read(size)) and len(data) < 20_000:
                assert len(portion) <= size
                data += portion
        assert text.encode().startswith(data)
        assert len(data) >= 20_000


def test_a_zip_of_one_file_is_read_like_the_file(tmp_path):
    path = zipped(
        tmp_path / "a.zip",
        **{"2024__may.csv": PLAIN, "__MACOSX__._may.csv": "x", ".hidden": "x"},
    )
    settings = stream()
    assert files_of(path) == [path / "2024/may.csv"]
    refuse_unreadable(path / "2024/may.csv", settings)
    assert replayed(tmp_path, path, settings) == BOTH
    assert detect(str(path)).good == 2


def test_the_files_of_a_zip_are_one_replay_and_are_checked_together(tmp_path):
    other = PLAIN.replace("b,", "c,").replace("Müller,", "d,")
    path = zipped(tmp_path / "a.zip", **{"two.csv": other, "one.csv": PLAIN})
    assert replayed(tmp_path, path, stream()) == [*BOTH, ("d", 24.9), ("c", 24.91)]
    seen = detect_any(str(path))
    assert (seen.records, seen.good) == (4, 4)
    assert "2 files, all read by the settings that fit" in seen.notes[0]
    assert detect(str(path / "two.csv")).good == 2
    with pytest.raises(ConfigError) as error:
        detect(str(path / "three.csv"))
    assert "holds no three.csv" in error.value.message


def test_a_zip_in_a_folder_and_one_that_comes_by_a_pipe_are_read(tmp_path, monkeypatch):
    folder = tmp_path / "day"
    folder.mkdir()
    (folder / "b.csv").write_text(PLAIN)
    path = zipped(folder / "a.zip", **{"one.csv": PLAIN})
    assert files_of(folder) == [path / "one.csv", folder / "b.csv"]
    with path.open("rb") as pipe:
        monkeypatch.setattr("sys.stdin", type("Input", (), {"buffer": pipe}))
        with files_to_read(Path("-")) as (named,):
            assert named.name == "standard input: one.csv"
            assert sample_of(named.path, stream()).payloads == (PLAIN.encode(),)


def test_names_in_a_zip_lead_nowhere_else(tmp_path):
    path = tmp_path / "a.zip"
    (tmp_path / "secret.csv").write_text("secret")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../secret.csv", PLAIN)
        archive.writestr("/etc/passwd", PLAIN)
        archive.writestr("a\x1b[31m\nb.csv", PLAIN)
    inside = [path / "a\x1b[31m\nb.csv", path / "etc/passwd", path / "secret.csv"]
    assert files_of(path) == inside
    settings = stream()
    assert all(
        fixes_in(sample_of(each, settings).payloads, settings) == BOTH
        for each in inside
    )
    seen = detect_any(str(path))
    assert (seen.good, r"a\x1b[31m\nb.csv" in seen.notes[0]) == (6, True)


def test_a_bomb_and_an_encrypted_file_are_refused(tmp_path):
    path = tmp_path / "bomb.zip"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a.csv", "w") as member,
    ):
        for _ in range(300):
            member.write(bytes(1 << 20))
    with pytest.raises(ConfigError, match="no records are packed so well"):
        sample_of(path / "a.csv", stream())
    (tmp_path / "a.csv").write_text(PLAIN)
    closed = tmp_path / "closed.zip"
    subprocess.run(
        ["zip", "-q", "-P", "secret", closed.name, "a.csv"], cwd=tmp_path, check=True
    )
    with pytest.raises(ConfigError, match=r"a.csv is encrypted"):
        sample_of(closed / "a.csv", stream())


def bomb(head: bytes) -> bytes:
    """A third of a megabyte of gzip that holds 320 MB, which begin like a file."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    parts = [packer.compress(head)]
    parts += [packer.compress(bytes(1 << 20)) for _ in range(320)]
    return b"".join([*parts, packer.flush()])


def test_gzip_is_bounded_while_it_is_unpacked_wherever_it_is_read(tmp_path):
    path, home = tmp_path / "a.csv.gz", tmp_path / "log"
    path.write_bytes(bomb(PLAIN.encode()))
    with pytest.raises(ConfigError, match="no records are packed so well"):
        replay(Log(home), path, stream())
    layer = tmp_path / "a.geojson.gz"
    layer.write_bytes(bomb(b"{"))
    with (
        pytest.raises(LayerError, match="no records are packed so well"),
        unpacked(layer, (".geojson",)),
    ):
        pass
    hidden = tmp_path / "a.geojson"  # its name does not say that it is packed
    hidden.write_bytes(bomb(b"{"))
    with pytest.raises(LayerError, match="no records are packed so well"):
        read_geojson(hidden, load_kinds(tmp_path))
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        for number in range(3):  # none by itself, but all together
            made.writestr(f"{number}.geojson", bytes(100 << 20))
    with (
        pytest.raises(LayerError, match="no records are packed so well"),
        unpacked(archive, (".geojson",)),
    ):
        pass
    packed = bomb(PLAIN.encode())
    told = decode(packed, stream(), arrival_us=0)  # as it would be posted
    assert told.rejects["reason"].to_pylist()[-1] == "too_large"
    assert len(told.fixes) == 2


def test_a_zip_that_breaks_gives_what_could_be_unpacked_and_says_so(tmp_path):
    path = zipped(
        tmp_path / "a.zip",
        **{"a.csv": HEADER + "a,2025-11-24T08:00:00Z,1,2\n" * 50_000},
    )
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 0xFF
    path.write_bytes(data)
    log = Log(tmp_path / "log")
    report = replay(log, path / "a.csv", stream(), end_mark=False)
    assert report.broken
    (tmp_path / "cut.zip").write_bytes(data[: len(data) // 2])
    with pytest.raises(ConfigError, match="is no whole zip"):
        files_of(tmp_path / "cut.zip")


def test_a_workbook_is_named_as_what_it_is(tmp_path):
    path = zipped(
        tmp_path / "a.xlsx",
        **{"[Content_Types].xml": "<x/>", "xl__workbook.xml": "<x/>"},
    )
    with pytest.raises(ConfigError) as error:
        detect(str(path))
    assert "workbook" in error.value.message
    assert "to_csv" in error.value.hint
