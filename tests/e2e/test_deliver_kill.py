"""kill -9 of a deliverer at random moments: repeats with the same ids, never a loss, never another order (SPEC X7)."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from st_common import tables
from st_common.answers.changes import stream_changes
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.delivery.message import change_ids
from st_common.engine.local import LocalEngine
from st_common.query.plan import Box, Plan
from tests.kit.http_receiver import Answer, HttpReceiver, http_receiver
from tests.kit.log_writer import bare_log

ROOT = Path(__file__).resolve().parents[2]
STREAMS = """
[streams.s]
format = "csv"
time_unit = "s"
max_ahead_s = "off"
crs = "planar"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
"""
DELIVERY = """
[deliveries.hook]
stream = "s"
to = "webhook"
url = "{url}"
token_env = "HOOK_TOKEN"
batch_rows = 5
retry_max_s = 5
"""


def prepare(folder: Path, receiver: HttpReceiver) -> Home:
    home = Home(folder)
    (folder / "conf").mkdir(parents=True)
    (folder / "conf" / "streams.toml").write_text(STREAMS)
    (folder / "conf" / "deliveries.toml").write_text(DELIVERY.format(url=receiver.url))
    log = bare_log(home.log("s"))
    for number in range(3):
        plan = Plan(
            stream="s", inside=Box(minx=0, miny=0, maxx=3 + number, maxy=5)
        ).to_json()
        row = {
            "op": "register",
            "query": f"q{number}",
            "version": 1,
            "plan": plan,
            "text": "",
            "owner": "t",
        }
        log.append(json.dumps(row).encode(), arrival_us=0, control=True)
    lines = [f"o{n % 17},{n},{(n * 7) % 10},1" for n in range(700)]
    for start in range(0, 700, 50):
        log.append(
            "\n".join(["id,t,x,y", *lines[start : start + 50], ""]).encode(),
            arrival_us=0,
        )
    return home


def start(home: Home, *options: str) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "st_common.processes.deliver",
        "hook",
        "--home",
        str(home.root),
        *options,
    ]
    env = {**os.environ, "HOOK_TOKEN": "s3cr3t"}
    return subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@pytest.mark.spec("X7", "X6")
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_deliverer_killed_again_and_again_loses_nothing(tmp_path: Path) -> None:
    chance, number = random.Random(5), 0

    def judge(changes: list[dict[str, object]]) -> Answer:
        nonlocal number
        number += 1
        if any(
            change["object"] == "o13" and change["query"] == "q1" for change in changes
        ):
            return Answer(status=422)
        time.sleep(0.002)
        return Answer(status=503) if number % 11 == 0 else Answer(cut=number % 13 == 0)

    with http_receiver(judge) as receiver:
        home = prepare(tmp_path, receiver)
        engine = LocalEngine(home, load_streams(home.root / "conf")["s"])
        kills = 0
        for _ in range(8):
            engine.batch()
            process, before = start(home), len(receiver.requests)
            end_s = time.monotonic() + 30
            while (
                len(receiver.requests) < before + 3
                and time.monotonic() < end_s
                and process.poll() is None
            ):
                engine.batch()
                time.sleep(0.005)
            time.sleep(chance.uniform(0, 0.3))
            kills += process.poll() is None
            process.kill()
            process.communicate(timeout=30)
            engine.commit()
        assert kills >= 4
        while engine.batch():
            pass
        engine.close()
        out, err = start(home, "--until-idle").communicate(timeout=120)
        summary = json.loads(out.splitlines()[-1])
    ids = change_ids(stream_changes(home, "s")).to_pylist()
    dead = [own for own in ids if own.startswith("q1/1/o13/")]
    assert list(dict.fromkeys(change["id"] for change in receiver.taken)) == [
        own for own in ids if own not in set(dead)
    ]
    assert sorted(
        tables.read(home.table("dead_letters"), columns=["id"])["id"].to_pylist()
    ) == sorted(dead)
    sent: dict[str, object] = {}
    for change in (change for request in receiver.requests for change in request):
        assert sent.setdefault(str(change["id"]), change) == change
    assert summary["position"] >= stream_changes(home, "s")["position"].to_pylist()[-1]
    assert b"s3cr3t" not in out + err
    assert all(
        "s3cr3t" not in path.read_text()
        for path in home.delivery("hook").glob("*.json")
    )
