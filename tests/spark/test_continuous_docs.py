"""The examples of docs/continuous.md run as they stand: a batch, files with a layer, Kafka, and the log of a home."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner

from st_common.cli import app
from tests.kit.jvm import of_spark
from tests.kit.kafka_broker import JARS, kafka_broker

pytestmark = [pytest.mark.timeout(900), pytest.mark.spec("S7")]
ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "continuous.md").read_text(encoding="utf-8")
BATCH, FILES, KAFKA, HOME = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
TAXIS = """
[streams.taxis]
format = "csv"
time_unit = "s"
columns = { object = "id", event_ts = "t", x = "lon", y = "lat" }
attributes = { speed = "double" }
"""
SESSION = """
from pathlib import Path

from st_common.spark.session import session
from st_common.config.spark import SparkSettings
from tests.kit.quick_spark import start_quickly

spark = session("example", place=SparkSettings(memory="1g"), extended=False, **{"spark.jars": JARS})
start_quickly(spark, Path.cwd())
"""


def taxis(folder: Path) -> None:
    """Files of three taxis: one stays in the centre, one passes the park, one is far."""
    (folder / "taxis").mkdir()
    for part in range(2):
        with (folder / "taxis" / f"{part}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(("taxi", "seconds", "lon", "lat"))
            for second in range(part * 10, part * 10 + 10):
                rows.writerow((1, 1_700_000_000 + second, -8.61, 41.15))
                rows.writerow(
                    (2, 1_700_000_000 + second, -8.62 + second / 2000, 41.146)
                )
                rows.writerow((3, 1_700_000_000 + second, -8.5, 41.3))


def placed(example: str, folder: Path) -> str:
    """An example with its paths in a folder: the JVM of the tests stands elsewhere."""
    path = r'(csv|start)\(\s*"(?=\w)|"(checkpointLocation|home)", "(?=\w)'
    return re.sub(path, lambda found: f"{found[0]}{folder}/", example)


def test_the_examples_of_a_batch_and_of_files_run(spark, tmp_path):
    taxis(tmp_path)
    names: dict = {"spark": spark}
    exec(compile(placed(BATCH, tmp_path), "continuous.md, a batch", "exec"), names)
    found = names["changes"].toArrow().to_pylist()
    centre = {r["object"] for r in found if r["query"] == "centre" and r["sign"] > 0}
    assert {"1"} <= centre
    assert "3" not in centre
    assert {r["query"] for r in found} >= {"centre", "nearest", "busy", None}
    exec(compile(placed(FILES, tmp_path), "continuous.md, files", "exec"), names)
    rows = DeltaTable(tmp_path / "changes").to_pyarrow_table().to_pylist()
    park = [(r["object"], r["partner"], r["sign"]) for r in rows if r["query"]]
    assert sorted(park) == [("2", "p1", -1), ("2", "p1", 1)]
    account = [json.loads(r["fields"]) for r in rows if r["cause"] == "account"]
    assert sum(one["fixes"] for one in account) == 60


def test_the_example_of_a_home_runs(spark, tmp_path):
    (tmp_path / "home" / "conf").mkdir(parents=True)
    (tmp_path / "home" / "conf" / "streams.toml").write_text(TAXIS)
    records = "id,t,lon,lat,speed\n" + "".join(
        f"{name},{1_700_000_000 + second},-8.61,41.15,{speed + second}\n"
        for second in range(10)
        for name, speed in (("slow", 20), ("quick", 45))
    )
    (tmp_path / "taxis.csv").write_text(records)
    words = ["replay", "taxis", str(tmp_path / "taxis.csv"), "--home"]
    done = CliRunner().invoke(app, [*words, str(tmp_path / "home")])
    assert done.exit_code == 0, done.output
    names: dict = {"spark": spark}
    exec(compile(placed(HOME, tmp_path), "continuous.md, a home", "exec"), names)
    rows = pq.read_table(tmp_path / "log-changes").to_pylist()
    fast = [(r["object"], r["sign"], r["event_ts"].second) for r in rows if r["query"]]
    assert fast == [("quick", 1, 26)]  # at 51, the first above 50: 22:13:26
    account = [json.loads(r["fields"]) for r in rows if r["cause"] == "account"]
    assert sum(one["fixes"] for one in account) == 20


@pytest.mark.slow
def test_the_example_of_kafka_runs(tmp_path):
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    with kafka_broker(tmp_path) as broker:
        servers = {"bootstrap.servers": broker.address}
        admin = AdminClient(servers)
        admin.create_topics([NewTopic("positions", 1, 1)])["positions"].result(60)
        producer = Producer(servers)
        for second in range(20):
            fix = {"bus": "b", "t": 1_700_000_000_000 + second * 1000}
            fix |= {"lon": -8.61, "lat": 41.15, "free": second % 10 < 5}
            producer.produce("positions", json.dumps(fix))
        producer.flush(60)
        jars = ",".join(
            str(jar) for jar in sorted((JARS.parent / "spark-kafka").glob("*.jar"))
        )
        example = KAFKA.replace("localhost:9092", broker.address)
        done = subprocess.run(
            [sys.executable, "-c", f"JARS = {jars!r}{SESSION}{example}"],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "SPARK_SUBMIT_OPTS": " ".join(of_spark()),
            },
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
    rows = pq.read_table(tmp_path / "kafka-changes").to_pylist()
    told = sorted((r["position"], r["sign"]) for r in rows if r["query"])
    # The clock stands 5 s behind the newest fix, so the last of them wait.
    assert [sign for _, sign in told] == [1, -1, 1]
