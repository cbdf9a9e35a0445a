"""What Spark's Python workers are forked from imports nothing from zip files."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark

SITE = Path(pyspark.__file__).parent
ZIPS = sorted((SITE / "python" / "lib").glob("*.zip"))
PROGRAM = """
import importlib, sys
import py4j
first = py4j.__file__
for name in [name for name in sys.modules if name.startswith("py4j")]:
    del sys.modules[name]
from st_common.spark.worker_daemon import forget_zips
forget_zips()
import py4j, pyspark.daemon
known = [place for place in (*sys.path, *sys.path_importer_cache) if ".zip" in place]
print(first, py4j.__file__, pyspark.__file__, known, sep="|")
"""


def test_packages_come_from_folders_though_spark_puts_zip_files_in_front() -> None:
    assert len(ZIPS) == 2
    places = os.pathsep.join(str(path) for path in ZIPS)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": places},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    before, py4j, spark, known = done.stdout.strip().split("|")
    assert ".zip" in before, "as a worker of PySpark's own finds it"
    assert Path(spark).parent == SITE
    assert Path(py4j).parent.parent == SITE.parent
    assert known == "[]"
