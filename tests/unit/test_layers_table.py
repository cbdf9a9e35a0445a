"""Nobody but `layers/table.py` opens the table of a layer."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = "st_common/layers/table.py"
BY_PATH = {
    # they write or care for the files of the table, and read no row of it
    "st_common/layers/declared.py",
    "st_common/layers/load.py",
    "st_common/layers/put.py",
    "st_common/layers/spreading.py",
    "st_common/layers/points.py",
    "st_common/layers/stored.py",
    "st_common/lineage/telling.py",
    "st_common/maintenance/layer_retention.py",
    "st_common/quality/home_check.py",
    "st_common/spark/continuous/prepared.py",
    HERE,
}


def naming(pattern):
    modules = [*ROOT.glob("st_common/**/*.py"), *ROOT.glob("jobs/**/*.py")]
    return {
        str(path.relative_to(ROOT))
        for path in modules
        if re.search(pattern, path.read_text())
    }


def test_nobody_else_opens_the_table_of_a_layer():
    opened = r"""\.table\(\s*["']layers["']|load_contract\(["']layers["']"""
    assert naming(opened) - {HERE, "st_common/config/home.py"} == set()


def test_its_folder_is_known_to_those_that_read_no_rows_of_it():
    assert naming(r"\btable_path\b") == BY_PATH
