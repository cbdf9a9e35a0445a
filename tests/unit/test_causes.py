"""One line out of the many that the JVM has for an error."""

import pytest

from st_common.spark.causes import java_line

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
