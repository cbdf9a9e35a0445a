"""How JVMs of tests are started."""

import contextlib
import os
import tempfile
from pathlib import Path

QUICK_TO_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Each lives for seconds, in which a better compiler and collector cost more than they bring: a session of Spark that
starts and computes little takes 12.9 s of CPU with these and 21.2 s without."""
CLASSES = Path(__file__).resolve().parents[2] / "build" / "spark-classes.jsa"
"""Classes of Spark as a JVM has them when it has read them, made by `make`; a session takes 18 s of CPU with it where
it takes 27 s without. A JVM that cannot use it reads classes itself, without a word."""


def of_spark() -> tuple[str, ...]:
    """How those of Spark are started."""
    if not CLASSES.exists():
        return QUICK_TO_START
    silent = (f"-Xlog:{tags}=off" for tags in ("cds", "cds+dynamic", "class+path"))
    return (*QUICK_TO_START, f"-XX:SharedArchiveFile={CLASSES}", *silent)


def make_classes() -> None:
    """Writes `CLASSES`, at the end of a session that does what most tests do."""
    from st_common.config.spark import SparkSettings
    from st_common.spark.session import session

    CLASSES.parent.mkdir(exist_ok=True)
    made = CLASSES.with_suffix(".new")
    made.unlink(missing_ok=True)
    options = (*QUICK_TO_START, f"-XX:ArchiveClassesAtExit={made}")
    os.environ["SPARK_SUBMIT_OPTS"] = " ".join(options)
    with tempfile.TemporaryDirectory() as folder:
        spark = session(
            "classes",
            place=SparkSettings(memory="1g"),
            log_file=Path(folder) / "spark.log",
        )
        table = f"delta.`{folder}/table`"
        spark.range(100).write.format("delta").save(f"{folder}/table")
        for statement in (
            f"DELETE FROM {table} WHERE id < 5",
            f"SELECT id % 7 AS k, count(*) FROM {table} GROUP BY k ORDER BY k",
        ):
            spark.sql(statement).toArrow()
        gateway = spark.sparkContext._gateway
        assert gateway is not None
        with contextlib.suppress(Exception):  # it answers no more
            gateway.jvm.java.lang.System.exit(0)
        gateway.proc.wait(timeout=300)
    made.replace(CLASSES)


if __name__ == "__main__":
    make_classes()
