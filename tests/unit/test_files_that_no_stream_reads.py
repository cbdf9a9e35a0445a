"""Files that are known and that no stream reads are named, with the command that makes fixes of them."""

import re
import shlex
import subprocess
import sys

import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pytest

from st_common.errors import ConfigError
from st_common.sniffing.report import sniff

pytestmark = pytest.mark.spec("B6")


@pytest.mark.parametrize(
    ("content", "what", "command"),
    [
        (b"PK\x03\x04\x14\0\x06\0\x08\0\0\0!\0" + b"\0" * 12 + b"\x13\0\0\0[Content_Types].xml", "Excel", "read_excel"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "old Excel", "read_excel"),
        (b"\x0e\x10\x43\x08\x30\0\0\0.FIT" + b"\0" * 60, "FIT", "gpsbabel -t -i garmin_fit"),
        (b'<?xml version="1.0"?>\n<TrainingCenterDatabase>', "TCX", "gpsbabel -t -i gtrnctr"),
        (b'<?xml version="1.0"?>\n<kml xmlns="..">', "KML", "fairway layer load"),
        (b"<!DOCTYPE html><html>", "HTML", "browser"),
        (b"SQLite format 3\0" + b"\0" * 90, "GeoPackage", "ogr2ogr"),
        (b"BZh91AY&SY" + b"\0" * 90, "bzip2", "bzip2 -dk"),
    ],
)  # fmt: skip
def test_a_known_file_is_named_with_its_command(tmp_path, content, what, command):
    path = tmp_path / "file.bin"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=what) as wrong:
        sniff(str(path))
    assert command in str(wrong.value.hint)
    assert "no stream reads that" in wrong.value.message


@pytest.mark.parametrize("module", ["feather", "orc"])
def test_the_command_makes_a_file_that_is_read(tmp_path, module):
    path = tmp_path / f"fixes.{module}"
    table = pa.table({"id": ["a"], "t": [1_700_000_000], "lon": [10.0], "lat": [50.0]})
    write = {"feather": pa.feather.write_feather, "orc": pa.orc.write_table}[module]
    write(table, str(path))
    with pytest.raises(ConfigError, match="no stream reads that") as wrong:
        sniff(str(path))
    _, *command = shlex.split(str(wrong.value.hint))
    subprocess.run([sys.executable, *command], check=True)
    assert sniff(str(tmp_path / "fixes.parquet")).good == 1


def test_trips_with_all_their_points_in_one_column_are_refused(tmp_path):
    path = tmp_path / "trips.csv"
    path.write_text(
        "TRIP_ID,TIMESTAMP,POLYLINE\n"
        'T1,1372636858,"[[-8.618643,41.141412],[-8.618499,41.141376]]"\n'
    )
    with pytest.raises(ConfigError, match="POLYLINE holds the points of a whole trip") as wrong:  # fmt: skip
        sniff(str(path))
    command = re.sub("(?s).*python -c ", "", str(wrong.value.hint))
    for name, column in (("[ID]", "['TRIP_ID']"), ("[TIME]", "['TIMESTAMP']"), ("FILE", str(path))):  # fmt: skip
        command = command.replace(name, column)
    (program,) = shlex.split(command)
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)  # fmt: skip
    fixes = tmp_path / "fixes.csv"
    fixes.write_bytes(done.stdout)
    seen = sniff(str(fixes))
    assert (seen.good, seen.table["columns"]["x"]) == (2, "lon")
