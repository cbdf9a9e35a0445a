"""Every import contract is kept by the code as it is, and broken by code that it is there to keep out."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINT_IMPORTS = Path(sys.executable).with_name("lint-imports")
CONTRACTS = {
    contract["id"]: contract["name"]
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"][
        "importlinter"
    ]["contracts"]
}
# contract, then the files to plant: path and text
PLANTED = {
    "a lower layer knows a higher one": (
        "layers",
        {"st_common/errors.py": "import st_common.config.home"},
    ),
    "operators know an engine": (
        "layers",
        {"st_common/operators/planted.py": "import st_common.engine"},
    ),
    "a region knows a query": (
        "layers",
        {"st_common/regions/planted.py": "import st_common.query.plan"},
    ),
    "what a run brings knows an operator": (
        "operators",
        {
            "st_common/operators/turn/planted.py": "import st_common.operators.fence.specs"
        },
    ),
    "the local engine knows Spark": (
        "layers",
        {"st_common/engine/planted.py": "import st_common.spark"},
    ),
    "a package without a layer": ("layers", {"st_common/helpers.py": ""}),
    "pyspark in an operator": (
        "spark",
        {"st_common/operators/planted.py": "import pyspark.sql"},
    ),
    "delta in a job": (
        "spark",
        {"jobs/planted.py": "from delta.tables import DeltaTable"},
    ),
    "sedona in a DAG": ("spark", {"dags/planted.py": "import sedona.spark"}),
    "the library knows the interface that is made of it": (
        "public",
        {"st_common/operations/planted.py": "import fairway"},
    ),
    "airflow in the library": (
        "airflow",
        {"st_common/operations/planted.py": "from airflow.sdk import DAG"},
    ),
    "airflow in a job": ("airflow", {"jobs/planted.py": "import airflow"}),
    "a DAG knows a job": (
        "dags",
        {"jobs/planted.py": "", "dags/planted.py": "import jobs.planted"},
    ),
    "a DAG knows Spark through the library": (
        "dags",
        {
            "st_common/airflow/planted.py": "import st_common.spark",
            "dags/planted.py": "import st_common.airflow.planted",
        },
    ),
    "the library knows a job": (
        "jobs",
        {"jobs/planted.py": "", "st_common/cli/planted.py": "import jobs.planted"},
    ),
    "the read side starts a JVM": (
        "reading",
        {"st_common/answers/planted.py": "import st_common.spark"},
    ),
    "a reference asks a kernel": (
        "reference",
        {"st_common/reference/ranges.py": "import st_common.geometry.circles"},
    ),
    "a check asks an operator": (
        "checks",
        {"st_common/checks/planted.py": "import st_common.operators.state.state"},
    ),
    "two modules know each other": (
        "cycles",
        {
            "st_common/operations/one.py": "import st_common.operations.two",
            "st_common/operations/two.py": "import st_common.operations.one",
        },
    ),
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the code that contracts are about."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for package in ("st_common", "jobs", "dags"):
        shutil.copytree(
            ROOT / package,
            tmp_path / package,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    return tmp_path


def lint(tree: Path, *contracts: str) -> subprocess.CompletedProcess[str]:
    chosen = [f"--contract={contract}" for contract in contracts]
    return subprocess.run(
        [LINT_IMPORTS, "--no-logo", "--no-cache", *chosen],
        cwd=tree,
        env={**os.environ, "NO_COLOR": "1", "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.spec("C1")
@pytest.mark.slow
def test_the_code_keeps_every_contract(tree: Path):
    done = lint(tree)
    assert done.returncode == 0, done.stdout
    assert f"Contracts: {len(CONTRACTS)} kept, 0 broken." in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("case", PLANTED)
def test_a_planted_violation_breaks_its_contract(tree: Path, case: str):
    contract, files = PLANTED[case]
    for path, text in files.items():
        with (tree / path).open("a") as target:
            target.write(f"\n{text}\n")
    done = lint(tree, contract)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{CONTRACTS[contract]} BROKEN" in done.stdout


def test_every_contract_has_a_planted_violation():
    assert {contract for contract, _ in PLANTED.values()} == set(CONTRACTS)


@pytest.mark.spec("C1")
@pytest.mark.parametrize(
    "name",
    [
        "dags",
        "jobs",
        "st_common",
        "conf",
        "docker-compose.yml",
        "tests",
        "data_contracts",
    ],
)
def test_the_top_level_names_the_parts_of_the_pipeline(name: str):
    assert (ROOT / name).exists()


BITS_OF_POSITIONS = re.compile(
    r">> ?24\b|<< ?24\b|16777215|0xFFFFFF\b|ROW_BITS|ROW_MASK"
)
NO_POSITIONS = {
    "st_common/position.py",
    "st_common/log/segment.py",  # how large a segment may be
    "st_common/operators/expressions/values.py",  # how many truth values are kept
}


def test_how_a_position_is_made_is_known_in_one_place():
    known = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "st_common").rglob("*.py")
        if BITS_OF_POSITIONS.search(path.read_text(encoding="utf-8"))
    }
    assert known <= NO_POSITIONS


# Where the word is no row of a log: the column of a table, and what `fairway why --json` shows.
OTHER_OPS = {
    "st_common/query/derived.py",
    "st_common/checks/why.py",
}


def _words(path: Path) -> set[str]:
    """The texts in a module, those of bytes as well."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    values = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    texts = {value for value in values if isinstance(value, str)}
    return texts | {
        value.decode("latin1") for value in values if isinstance(value, bytes)
    }


def _names_an_op(path: Path) -> bool:
    return any(word == "op" or '"op"' in word for word in _words(path))


def test_control_rows_are_written_and_read_in_one_folder():
    own = ("st_common/controls/",)
    found = {
        str(path.relative_to(ROOT))
        for folder in ("st_common", "jobs", "dags", "bench", "tools", "demo")
        for path in (ROOT / folder).rglob("*.py")
        if _names_an_op(path)
    }
    assert {path for path in found if not path.startswith(own)} == OTHER_OPS
    assert any(path.startswith("st_common/controls/") for path in found)


# Of CRSs as pyproj and people name them.
SAY_GEOGRAPHIC = {
    "st_common/crs.py",
    "st_common/detect/words.py",  # words in the heads of columns
    "st_common/config/stream_values.py",
}


def test_what_coordinates_mean_is_a_space_and_no_flag():
    said = {
        str(path.relative_to(ROOT))
        for package in ("st_common", "jobs", "dags")
        for path in (ROOT / package).rglob("*.py")
        if "geographic" in path.read_text(encoding="utf-8")
    }
    assert said == SAY_GEOGRAPHIC
