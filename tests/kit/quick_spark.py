"""A session of Spark that tests share, made quick to start a query: what each start does in vain is left out."""

import sys
from pathlib import Path
from typing import Any

_SCRIPT = """#!/bin/sh
unset PYTHONPATH
exec '{python}' "$@"
"""


def start_quickly(spark: Any, folder: Path) -> None:
    """Lets a session start its queries quickly, from now on.

    Spark puts zip files first on the path of imports. Each start of a micro-batch query starts several processes of
    Python, and each compiles anew what it imports of them, though the same modules lie installed: a new query took 7 s,
    not 11.5. And Delta takes 50 tasks to read the log of a table, of which tests have a few lines.

    Args:
        spark: the session.
        folder: takes the program that stands for Python.
    """
    program = folder / "python"
    program.write_text(_SCRIPT.format(python=sys.executable), encoding="utf-8")
    program.chmod(0o755)
    spark.sparkContext.pythonExec = str(program)
    spark.conf.set("spark.databricks.delta.snapshotPartitions", 2)
