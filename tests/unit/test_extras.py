"""What an installation without extras does: it names the extra that is missing, and nothing else takes its place."""

import ast
import re
import sys
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common.cli import app
from st_common.extras import EXTRA_OF

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("fairway", "st_common", "jobs")
# Airflow brings its own environment; who wants rows as GeoPandas has them brings that.
ELSEWHERE = {"airflow", "dags", "geopandas"}


def test_whatever_the_code_imports_is_in_the_core_or_named_with_its_extra():
    core = distributions_in("core")
    by_module = packages_distributions()
    for name in imported_modules() - ELSEWHERE - set(PRODUCT):
        brought_by = {plain(one) for one in by_module[name]}
        if name in EXTRA_OF:
            assert not brought_by & core, name
            assert brought_by & with_theirs(distributions_in(EXTRA_OF[name])), name
        else:
            assert brought_by & core, f"{name} is neither in core.in nor in EXTRA_OF"


def test_every_extra_of_the_package_is_one_that_errors_name():
    text = (ROOT / "pyproject.toml").read_text()
    extras = set(re.findall(r'^(\w+) = \{ file = \["requirements/', text, re.MULTILINE))
    assert extras - {"dependencies"} == set(EXTRA_OF.values())
    assert re.findall(
        r"^-r (\w+)\.in", (ROOT / "requirements/jobs.in").read_text(), re.MULTILINE
    ) == [
        "core",
        *dict.fromkeys(EXTRA_OF.values()),
    ]


def test_nothing_that_is_shipped_imports_the_test_kit():
    for path in product_files():
        assert "tests.kit" not in path.read_text(), path


SETTINGS = """[streams.s]
engine = "spark"
format = "csv"
columns = { object = "id", x = "x", y = "y" }
"""
DELIVERY = """[deliveries.out]
stream = "s"
to = "kafka"
bootstrap = "127.0.0.1:9"
topic = "t"
tls = false
"""


@pytest.fixture
def places(tmp_path: Path) -> list[str]:
    (tmp_path / "home" / "conf").mkdir(parents=True)
    (tmp_path / "home" / "conf" / "streams.toml").write_text(SETTINGS)
    return ["--home", str(tmp_path / "home")]


@pytest.mark.spec("S9")
def test_a_stream_on_spark_without_spark_says_what_to_do_and_runs_on_nothing_else(
    places, tmp_path, monkeypatch, capsys
):
    from jobs import run_stream

    monkeypatch.setitem(sys.modules, "pyspark", None)
    result = CliRunner().invoke(app, [*places, "run", "s", "--until-idle"])
    assert result.exit_code == 2
    assert result.stderr == (
        "error: stream 's' runs on the engine spark, which is not installed (pip install 'fairway-streams[spark]', or "
        'engine = "local" in its settings: answers are the same)\n'
    )
    assert run_stream.main(["s", *places]) == 2
    assert capsys.readouterr().err == result.stderr
    assert not (tmp_path / "home" / "streams").exists()


@pytest.mark.spec("S9")
@pytest.mark.parametrize(
    ("module", "extra", "words"),
    [
        (
            "pyspark",
            "spark",
            ["partition", "default", "--source=points.csv", "--engine=spark"],
        ),
        ("confluent_kafka", "feeds", ["deliver", "out", "--until-idle"]),
    ],
)
def test_a_command_whose_extra_is_missing_names_it_on_one_line(
    places, tmp_path, monkeypatch, module, extra, words
):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{number},{number}\n" for number in range(900))
    Path("points.csv").write_text(f"x,y\n{rows}")
    (tmp_path / "home" / "conf" / "deliveries.toml").write_text(DELIVERY)
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    result = CliRunner().invoke(app, [*places, *words])
    assert result.exit_code == 2, result.output
    assert result.stderr == (
        f"error: this needs {module}, which the extra {extra} brings (pip install 'fairway-streams[{extra}]')\n"
    )


def product_files() -> list[Path]:
    files = (path for name in PRODUCT for path in sorted((ROOT / name).rglob("*.py")))
    return [path for path in files if "testing" not in path.parts]


def imported_modules() -> set[str]:
    """The first names of modules that are not Python's own."""
    names: set[str] = set()
    for path in product_files():
        if "airflow" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module.partition(".")[0])
    return names - sys.stdlib_module_names


def distributions_in(group: str) -> set[str]:
    lines = (ROOT / "requirements" / f"{group}.in").read_text().splitlines()
    return {
        plain(re.split(r"[<>=]", line)[0]) for line in lines if not line.startswith("#")
    }


def with_theirs(names: set[str]) -> set[str]:
    """Distributions, and those that they ask for themselves."""
    asked = (requires(name) or [] for name in names)
    return names | {
        plain(re.split(r"[<>=!~; \[(]", line)[0]) for lines in asked for line in lines
    }


def plain(name: str) -> str:
    return name.lower().replace("_", "-").strip()
