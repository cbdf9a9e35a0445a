"""One line out of the many that the JVM has for an error."""

import pytest
from typer.testing import CliRunner

from jobs import partition
from st_common.cli import app
from st_common.errors import SparkError
from st_common.extras import java_line, of_spark

STOPPED = """An error occurred while calling None.org.apache.spark.sql.classic.SparkSession.
: java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.
This stopped SparkContext was created at:

org.apache.spark.api.java.JavaSparkContext.<init>(JavaSparkContext.scala:59)
"""
BARE = """An error occurred while calling o1.load.
: java.lang.NullPointerException
\tat org.apache.spark.SparkContext.<init>(SparkContext.scala:1)
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            STOPPED,
            "IllegalStateException: Cannot call methods on a stopped SparkContext.",
        ),
        (BARE, "NullPointerException"),
        ("Java gateway process exited", "Java gateway process exited"),
        ("", "Exception"),
    ],
)
def test_what_the_jvm_says_is_told_without_its_stack(text: str, line: str) -> None:
    assert java_line(Exception(text)) == line


@pytest.mark.parametrize("module", ["py4j.protocol", "pyspark.errors.exceptions.base"])
def test_an_error_of_spark_is_one_for_people_and_any_other_stays(module: str) -> None:
    kind = type("Py4JJavaError", (Exception,), {"__module__": module})
    told = of_spark(kind(STOPPED))
    assert isinstance(told, SparkError)
    assert told.exit_code == 1
    assert str(told).startswith("Spark: IllegalStateException: Cannot call methods on")
    assert "\n" not in str(told)
    assert "JAVA_HOME" in str(of_spark(kind("[JAVA_GATEWAY_EXITED] Java gateway")))
    other = ValueError("x")
    assert of_spark(other) is other


def test_a_job_and_a_command_say_what_spark_said_in_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = type("Py4JJavaError", (Exception,), {"__module__": "py4j.protocol"})

    def fails(*_args: object, **_options: object) -> None:
        raise kind(STOPPED)

    monkeypatch.setattr("st_common.processes.partitioning.partition_group", fails)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/streams.toml").write_text("")
    assert partition.main(["default", f"--home={tmp_path}"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: Spark: IllegalStateException: Cannot call")
    words = ["partition", "default", "--home", str(tmp_path)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    assert done.stderr.splitlines() == [line]


def test_an_error_with_a_line_break_in_a_name_is_one_line(tmp_path) -> None:
    done = CliRunner().invoke(app, ["check", str(tmp_path / "a\nb\x1b[2J")])
    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()
    assert r"a\nb\x1b[2J" in line
