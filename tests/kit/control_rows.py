"""Control rows of cases: written as the product writes them, read by the oracle in its own way."""

import json

from st_common.controls.rows import ControlRow
from st_common.controls.writing import to_bytes
from tests.kit.oracle_rows import Control


def control(row: ControlRow, position: int = 0) -> Control:
    """A control row as it stands in a log."""
    return Control(position=position, row=json.loads(to_bytes(row)))
