"""SIGTERM reaches the owner of a stream, whatever its process is in the middle of."""

import io
import os
import signal
import threading

import pyarrow.csv as arrow_csv
import pytest

from st_common.engine.owner import owned_folder

ROWS = 6_000_000


@pytest.mark.spec("C4")
def test_a_read_of_csv_does_not_take_the_signal(tmp_path):
    data = io.BytesIO(b"a,b\n" + b"1,2\n" * ROWS)
    with owned_folder(tmp_path / "s", engine="local") as owner:
        ask = threading.Timer(0.03, os.kill, (os.getpid(), signal.SIGTERM))
        ask.start()
        table = arrow_csv.read_csv(data)
        ask.join()
        assert len(table) == ROWS
        assert owner.is_terminated
