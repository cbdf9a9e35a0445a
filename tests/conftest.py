"""What all tests share: hypothesis profiles, the folder of real data, and the marks of the specification's rows."""

import csv
import functools
import gc
import importlib.util
import json
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kit.jvm import of_spark

pytest.register_assert_rewrite(
    "tests.kit.laws", "tests.kit.telling"
)  # before anything imports it
ROOT = Path(__file__).resolve().parents[1]
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS", " ".join(of_spark())
)  # also of jobs that tests start
UNDER_CI = bool(os.environ.get("CI"))
LEFT_OUT = pytest.StashKey[int]()
"""How many laws are not of the tenth that is asked for, or had all their cases in a search before."""
MISSING = pytest.StashKey[dict[str, int]]()
"""How many cases each law has not had yet, where it is noted what they had."""
SHARE = pytest.StashKey[float]()
"""How many seconds each law has."""
MARKS_OF_FOLDERS = {
    "spark": "spark",
    "dags": "dags",
    "e2e": "e2e",
    "airflow": "airflow",
    "browser": "browser",
}
SERVICES = ("spark", "dags", "airflow", "browser")
"""Marks of what `make test-services` runs, and `make test` does not."""
UNMARKED = "/no-spark-without-the-mark-spark"
"""Where a test that lacks the mark finds Spark: so it fails at once, instead of starting a JVM in `make test`."""

if importlib.util.find_spec(
    "hypothesis"
):  # not in Airflow's environment, where nothing is a law
    from hypothesis import HealthCheck, Phase, settings

    from tests.kit.effort import AGAIN, DEEP, QUICK, Span
    from tests.kit.law_notes import (
        Note,
        add_note,
        left_to_try,
        missing,
        read_notes,
        tenth_of,
    )

    # A shared machine makes any deadline and any health check on time a matter of luck.
    steady = {
        "deadline": None,
        "suppress_health_check": [HealthCheck.too_slow],
        "print_blob": True,
    }
    settings.register_profile("quick", max_examples=QUICK, **steady)
    settings.register_profile("deep", max_examples=DEEP, **steady)
    settings.register_profile("ci", max_examples=AGAIN, derandomize=True, **steady)
    settings.register_profile("random", max_examples=DEEP, database=None, **steady)
    # tools/mutants.py asks whether a case of CI fails, not which is the smallest.
    settings.register_profile(
        "mutants",
        max_examples=AGAIN,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        **steady,
    )
    PROFILE = os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if UNDER_CI else "quick")
    settings.load_profile(PROFILE)
else:
    PROFILE = "none"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--spec-marks",
        metavar="FILE",
        help="write which tests carry which rows of the specification",
    )
    parser.addoption(
        "--law-seconds",
        metavar="SECONDS",
        type=float,
        help="the time of all laws that are run, of which each has an equal share",
    )
    parser.addoption(
        "--law-tenth",
        metavar="SEED",
        type=int,
        help="a tenth of all laws: which, is the seed's choice",
    )
    parser.addoption(
        "--law-notes",
        metavar="FILE",
        type=Path,
        help="write what each law tried; those that have had all their cases there are not run, cheap ones come first",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is imported and collected lasts as long as the process: to look for garbage in it took 5 % of laws."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_configure() -> None:
    """Builds the tree of commands once a process: each test that calls `CliRunner` would take 30 ms to build it."""
    if PROFILE != "none":  # not in Airflow's environment, where nothing runs commands
        from typer import testing

        testing._get_command = functools.cache(testing._get_command)


def pytest_unconfigure() -> None:
    gc.unfreeze()  # else DuckDB takes at exit for a leak what was kept


def pytest_report_header() -> str:
    return f"laws: profile {PROFILE}"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data, beside the repository or at FAIRWAY_SHARED."""
    folder = Path(os.environ.get("FAIRWAY_SHARED", ROOT.parent / "shared"))
    if folder.is_dir():
        return folder
    if UNDER_CI:
        pytest.fail(
            f"no real data at {folder}: under CI nothing may be left out", pytrace=False
        )
    pytest.skip(f"no real data at {folder}")


@pytest.fixture(autouse=True)
def secrets_of_its_own() -> Iterator[None]:
    """What a test has as a secret is a word like any other to the next one of its process."""
    from st_common.config import redaction

    forms, hosts = redaction._forms.copy(), redaction._hosts.copy()
    yield
    redaction._forms.clear()
    redaction._hosts.clear()
    redaction._forms.update(forms)
    redaction._hosts.update(hosts)


@pytest.fixture
def command_line(tmp_path: Path) -> Callable[..., object]:
    """Runs commands that must succeed, and gives their result; the home is `home`, the settings lie in `conf`."""
    from typer.testing import CliRunner

    from st_common.cli import app

    (tmp_path / "conf").mkdir()
    places = ["--home", str(tmp_path / "home"), "--conf", str(tmp_path / "conf")]

    def run(*words: str) -> object:
        found = CliRunner().invoke(app, [*words, *places], prog_name="fairway")
        assert found.exit_code == 0, found.output
        return found

    return run


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """A session on two cores; what the JVM prints goes to a file."""
    from st_common.config.spark import SparkSettings
    from st_common.spark.session import session
    from tests.kit.quick_spark import start_quickly

    made = session(
        "tests",
        place=SparkSettings(memory="2g"),
        log_file=tmp_path_factory.mktemp("spark") / "spark.log",
    )
    start_quickly(made, tmp_path_factory.mktemp("python"))
    yield made
    made.stop()


OF_TABLES = {"test_foreign_writers", "test_layers_on_spark", "test_upkeep"}
"""Files whose tests share a second Spark session, so that two processes have about as long."""


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    for item in items:
        folder = item.path.relative_to(ROOT / "tests").parts[0]
        if folder in MARKS_OF_FOLDERS:
            item.add_marker(MARKS_OF_FOLDERS[folder])
        if PROFILE == "deep" and _is_law(item):
            item.add_marker(
                pytest.mark.timeout(0), append=False
            )  # it takes what it takes
        if config.pluginmanager.hasplugin("xdist"):
            for group in _groups_of(item, folder):
                item.add_marker(pytest.mark.xdist_group(group))
        if item.get_closest_marker(
            "spark"
        ):  # Spark and py4j leave sockets and pipes open
            item.add_marker(
                pytest.mark.filterwarnings(
                    "ignore::pytest.PytestUnraisableExceptionWarning"
                )
            )
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
    items.sort(key=_place)
    marks = _marks(items)
    with (ROOT / "docs" / "spec-rows.csv").open(newline="", encoding="utf-8") as source:
        known = {record["id"] for record in csv.DictReader(source)}
    if unknown := sorted(set(marks) - known):
        tests = ", ".join(name for row in unknown for name in marks[row])
        raise pytest.UsageError(
            f"no such row in docs/spec-rows.csv: {' '.join(unknown)} (marked by {tests})"
        )
    if (seed := config.getoption("--law-tenth")) is not None:
        _leave_nine_tenths(config, items, seed)
    if notes := config.getoption("--law-notes"):
        _leave_what_is_done(config, items, notes)
    if target := config.getoption("--spec-marks"):
        Path(target).write_text(
            json.dumps(marks, indent=1, sort_keys=True) + "\n", encoding="utf-8"
        )


def _leave_nine_tenths(
    config: pytest.Config, items: list[pytest.Item], seed: int
) -> None:
    laws = {item.nodeid: item for item in items if _is_law(item)}
    tenth = tenth_of(laws, seed)
    left = [item for item in items if item.nodeid not in tenth]
    config.hook.pytest_deselected(items=left)
    config.stash[LEFT_OUT] = len(left)
    items[:] = [laws[law] for law in tenth]


def _is_law(item: pytest.Item) -> bool:
    return getattr(getattr(item, "obj", None), "is_hypothesis_test", False)


def _leave_what_is_done(
    config: pytest.Config, items: list[pytest.Item], notes: Path
) -> None:
    laws = {item.nodeid: item for item in items if _is_law(item)}
    noted = read_notes(notes)
    left = left_to_try(laws, noted)
    config.hook.pytest_deselected(items=[laws[law] for law in laws.keys() - left])
    items[:] = [laws[law] for law in left]
    config.stash[LEFT_OUT] = len(laws) - len(left)
    config.stash[MISSING] = {law: missing(law, noted) for law in left}


def pytest_collection_finish(session: pytest.Session) -> None:
    """Shares the time of laws out over those that are run."""
    seconds = session.config.getoption("--law-seconds")
    if seconds is not None:
        laws = sum(_is_law(item) for item in session.items)
        session.config.stash[SHARE] = seconds / max(1, laws)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """A law ends when its share of the time is over; what it tried is noted, whatever came of it."""
    notes = pyfuncitem.config.getoption("--law-notes")
    share = pyfuncitem.config.stash.get(SHARE, math.inf)
    if not _is_law(pyfuncitem) or (notes is None and share == math.inf):
        return (yield)
    most = pyfuncitem.config.stash.get(MISSING, {})
    span = Span(share, most.get(pyfuncitem.nodeid, DEEP))
    has_failed = True
    try:
        with span.limit(pyfuncitem.obj):
            yield
        has_failed = False
    except KeyboardInterrupt:  # of a user: what was tried until then has held
        has_failed = span.has_failed
        raise
    finally:
        if notes is not None:
            law = pyfuncitem.nodeid
            add_note(notes, Note(law, span.cases, span.takes, has_failed))
    return True


@pytest.hookimpl(tryfirst=True)  # before what a module or the session shares
def pytest_runtest_setup(item: pytest.Item) -> None:
    if any(item.get_closest_marker(mark) for mark in SERVICES):
        if os.environ.get("SPARK_HOME") == UNMARKED:
            del os.environ["SPARK_HOME"]
    else:
        os.environ["SPARK_HOME"] = UNMARKED


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """All laws may have been done before: that is no error."""
    left = session.config.stash.get(LEFT_OUT, 0)
    if left and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


def _place(item: pytest.Item) -> int:
    """Groups come first, that of Spark before all: whatever takes longest in one process should not begin last."""
    groups = [mark.args[0] for mark in item.iter_markers("xdist_group")]
    return 2 if not groups else int(groups != ["spark"])


def _groups_of(item: pytest.Item, folder: str) -> list[str]:
    """What a test shares a process with: one Spark session of two, or what was set up for all tests of a file."""
    names = getattr(item, "fixturenames", ())
    if "spark" in names:
        return ["tables of spark" if item.path.stem in OF_TABLES else "spark"]
    if "lives" in names:  # made once for all tests that look into them
        return ["lives"]
    if folder in {"e2e", "browser"} or _shares_what_is_set_up(item):
        return [item.path.stem]
    return []


def _shares_what_is_set_up(item: pytest.Item) -> bool:
    """Whether it takes a fixture of its module: two processes would set that up twice."""
    known = getattr(item, "_fixtureinfo", None)
    return known is not None and any(
        definition.scope == "module"
        for definitions in known.name2fixturedefs.values()
        for definition in definitions
    )


def _marks(items: list[pytest.Item]) -> dict[str, list[str]]:
    """The tests of each marked row: node ids without parameters, sorted, each once."""
    tests: dict[str, set[str]] = {}
    for item in items:
        for mark in item.iter_markers("spec"):
            for row in mark.args:
                tests.setdefault(row, set()).add(item.nodeid.split("[")[0])
    return {row: sorted(names) for row, names in tests.items()}
