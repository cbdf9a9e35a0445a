"""Jobs as Spark programs: started by spark-submit, in this process, without a JVM; their tables are equal (SPEC C2)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jobs import load_layer
from st_common import tables
from st_common.config.home import Home
from st_common.contracts import load_contract
from tests.kit.jvm import of_spark
from tests.kit.ports import free_port
from tests.kit.standalone import cluster_at

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
SUBMIT = Path(sys.executable).with_name("spark-submit")
EXTENDED = ("--properties-file", str(ROOT / "conf" / "spark.properties"))
JARS = ",".join(str(jar) for jar in sorted((ROOT / "jars").glob("*.jar")))


def submitted(job, *words, master, given=EXTENDED):
    """The end of a job that spark-submit runs."""
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JDK_JAVA_OPTIONS": " ".join(of_spark()),
    }
    spark = ("--master", master, "--jars", JARS, "--driver-memory", "1g", *given)
    return subprocess.run(
        [str(SUBMIT), *spark, str(ROOT / "jobs" / f"{job}.py"), *words],
        cwd=ROOT.parent,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def rows_of(home, layer):
    rows = tables.read(home.table("layers", layer), contract=load_contract("layers"))
    return rows.sort_by([("region_id", "ascending"), ("fid", "ascending")])


@pytest.fixture
def extract(shared):
    return shared / "data" / "osm-monaco" / "monaco-2022-07-19-nochangesets.osm.pbf"


@pytest.mark.spec("C2")
def test_a_layer_is_loaded_by_spark_submit_on_a_cluster(extract, tmp_path):
    home = Home(tmp_path / "home")
    places = ("--home", str(home.root), "--conf", str(ROOT / "conf"))
    words = ("green", str(extract), "--kinds", "park,forest", *places)
    with cluster_at(tmp_path, free_port(), free_port(), workers=1) as cluster:
        given = (*EXTENDED, "--conf", "spark.cores.max=2", "--executor-memory", "1g")
        done = submitted("load_layer", *words, master=cluster.master, given=given)
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert set(said["by_kind"]) == {"park", "forest"}
    alone = ("without", str(extract), "--kinds", "park,forest", "--engine", "local")
    assert load_layer.main([*alone, *places]) == 0
    assert rows_of(home, "green").equals(rows_of(home, "without"))


def test_a_session_without_delta_is_refused_in_a_line(extract, tmp_path):
    words = ("green", str(extract), "--home", str(tmp_path))
    done = submitted("load_layer", *words, master="local[1]", given=())
    assert done.returncode == 2
    lines = done.stdout.splitlines()  # where spark-submit prints what Python prints
    told = [line for line in lines if line.startswith("error: ")]
    assert len(told) == 1
    assert "lacks io.delta.sql.DeltaSparkSessionExtension" in told[0]
    assert "docs/spark.md" in told[0]


def test_a_job_takes_the_session_that_there_is_and_leaves_it(
    spark, extract, tmp_path, capsys
):
    """As in a notebook; the session of these tests has Delta and Sedona."""
    words = ["green", str(extract), "--kinds=park", "--home", str(tmp_path)]
    assert load_layer.main(words) == 0
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert set(said["by_kind"]) == {"park"}
    assert spark.range(3).count() == 3
