"""Deliveries to a receiver that fails, times out, restarts and refuses: at least once, in order, ids that stay."""

import json
import threading
import time

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common import tables
from st_common.answers.changes import stream_changes
from st_common.answers.follow import Follower
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.contracts import load_contract
from st_common.delivery import deliver as deliver_module
from st_common.delivery.deliver import deliver
from st_common.delivery.message import change_ids
from st_common.delivery.progress import read_progress
from st_common.delivery.settings import DeliverySettings
from st_common.delivery.webhook import WebhookSink
from st_common.engine.local import LocalEngine
from st_common.errors import ConfigError, FairwayError, FencedError, TransientError
from st_common.operations import lease
from st_common.operations.alerts import read_alerts
from st_common.operations.records import read_record
from st_common.operations.retry import pause_s
from st_common.query.passing import passing_name
from st_common.query.plan import Box, Plan
from tests.kit.http_receiver import Answer, http_receiver
from tests.kit.log_writer import bare_log

STREAM = StreamSettings(
    name="s",
    format="csv",
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
    crs="planar",
    time_unit="s",
    max_ahead_s=None,
)
QUERIES = ("qa", "qb", "other")


def prepare(folder, queries=QUERIES):
    home = Home(folder)
    log = bare_log(home.log("s"))
    for query in queries:
        plan = Plan(stream="s", inside=Box(minx=0, miny=0, maxx=5, maxy=5)).to_json()
        row = {
            "op": "register",
            "query": query,
            "version": 1,
            "plan": plan,
            "text": "",
            "owner": "t",
        }
        log.append(json.dumps(row).encode(), arrival_us=0, control=True)
    return home


def fixes(home, *lines):
    bare_log(home.log("s")).append(
        "\n".join(["id,t,x,y", *lines, ""]).encode(), arrival_us=0
    )


def run_engine(home, *, commit=True):
    engine = LocalEngine(home, STREAM)
    while engine.batch():
        pass
    engine.close() if commit else engine.abandon()


def some_changes(home, number=20):
    fixes(home, *(f"o{n},{n},{9 * (n % 3 == 2)},1" for n in range(number)))
    run_engine(home)


def settings(url, *, timeout_s=5.0, token_env=None, **more):
    sink = WebhookSink(url=url, timeout_s=timeout_s, token_env=token_env)
    given = {"name": "d", "stream": "s", "sink": sink, "retry_max_s": 0.05}
    return DeliverySettings(**{**given, **more})


def all_ids(home):
    return change_ids(stream_changes(home, "s")).to_pylist()


def taken_ids(receiver):
    return [change["id"] for change in receiver.taken]


def first_times(ids):
    return list(dict.fromkeys(ids))


@pytest.mark.spec("X7")
def test_every_change_once_and_in_order_when_nothing_fails(tmp_path):
    home = prepare(tmp_path)
    some_changes(home)
    with http_receiver() as receiver:
        done = deliver(home, settings(receiver.url, batch_rows=7), until_idle=True)
        assert taken_ids(receiver) == all_ids(home)
        assert (done.delivered, done.dead_letters, done.failed_tries) == (
            len(all_ids(home)),
            0,
            0,
        )
        assert {len(request) for request in receiver.requests[:-1]} == {7}
        fixes(home, "o1,50,9,9")
        run_engine(home, commit=False)  # the journal is enough
        assert deliver(home, settings(receiver.url), until_idle=True).delivered == 3
        assert deliver(home, settings(receiver.url), until_idle=True).delivered == 0
        assert taken_ids(receiver) == all_ids(home)


@pytest.mark.spec("X7")
def test_what_a_program_registers_for_itself_goes_only_where_the_globs_say_so(tmp_path):
    passing = passing_name()
    home = prepare(tmp_path, queries=("qa", passing, "client_side"))
    some_changes(home)
    for globs, expected in (
        ((), {"qa", "client_side"}),
        (("*",), {"qa", "client_side", passing}),
        (("client_*",), {"client_side", passing}),
    ):
        with http_receiver() as receiver:
            name = f"d{len(globs)}{len(expected)}"
            given = settings(receiver.url, name=name, queries=globs)
            deliver(home, given, until_idle=True)
            assert {change["query"] for change in receiver.taken} == expected


@pytest.mark.spec("X7")
def test_only_queries_of_the_globs(tmp_path):
    home = prepare(tmp_path)
    some_changes(home)
    with http_receiver() as receiver:
        deliver(
            home, settings(receiver.url, queries=("q*", "nothing")), until_idle=True
        )
        assert {change["query"] for change in receiver.taken} == {"qa", "qb"}
        progress = read_progress(home.delivery("d"), "s")
        assert (
            progress.position >= stream_changes(home, "s")["position"].to_pylist()[-1]
        )  # others are settled too
        assert progress.delivered == len(receiver.taken)


@pytest.mark.spec("X7")
@given(
    st.lists(
        st.sampled_from(
            [
                Answer(status=500),
                Answer(status=429, headers={"Retry-After": "0"}),
                Answer(cut=True),
                Answer(),
                Answer(status=200, pause_s=0.3),
                Answer(status=503),
                Answer(),
            ]
        ),
        max_size=6,
    ),
    st.integers(1, 9),
)
def test_a_receiver_that_fails_gets_all_in_order_at_least_once(
    tmp_path_factory, answers, batch_rows
):
    home = prepare(tmp_path_factory.mktemp("deliver"), ("qa",))
    fixes(home, *(f"o{n},{n},1,1" for n in range(12)))
    run_engine(home)
    script = iter(answers)
    with (
        pytest.MonkeyPatch.context() as patch,
        http_receiver(lambda _: next(script, Answer())) as receiver,
    ):
        patch.setattr(deliver_module, "pause_s", lambda *_, **__: 0.001)
        deliver(
            home,
            settings(
                receiver.url, batch_rows=batch_rows, timeout_s=0.2, retry_max_s=5.0
            ),
            until_idle=True,
        )
        assert first_times(taken_ids(receiver)) == all_ids(home)
        known = {}
        for change in receiver.taken:
            assert known.setdefault(change["id"], change) == change


@pytest.mark.spec("X7")
def test_a_receiver_that_restarts_misses_nothing(tmp_path):
    home = prepare(tmp_path)
    some_changes(home, 40)
    with http_receiver() as receiver:
        receiver.stop()
        work = threading.Thread(
            target=deliver,
            args=(home, settings(receiver.url, batch_rows=10, retry_max_s=20.0)),
            kwargs={"until_idle": True},
        )
        work.start()
        time.sleep(0.4)
        receiver.start()
        while len(receiver.taken) < 20:
            time.sleep(0.001)
        receiver.stop()
        time.sleep(0.3)
        receiver.start()
        work.join(timeout=60)
        assert first_times(taken_ids(receiver)) == all_ids(home)


@pytest.mark.spec("X7")
def test_refused_changes_are_dead_letters_and_later_ones_go_on(tmp_path):
    home = prepare(tmp_path, ("qa",))
    some_changes(home, 30)
    bad = {"o3", "o4", "o21"}

    def judge(changes):
        found = [change["object"] for change in changes if change["object"] in bad]
        return Answer(status=422, body=f"never {found[0]}") if found else Answer()

    with http_receiver(judge) as receiver:
        done = deliver(home, settings(receiver.url, batch_rows=8), until_idle=True)
        expected = [own for own in all_ids(home) if own.split("/")[2] not in bad]
        assert taken_ids(receiver) == expected
        assert (done.delivered, done.dead_letters) == (len(expected), 3)
        dead = tables.read(home.table("dead_letters")).sort_by("position").to_pylist()
        assert [json.loads(row["body"])["object"] for row in dead] == [
            "o3",
            "o4",
            "o21",
        ]
        assert [row["id"] for row in dead] == [
            json.loads(row["body"])["id"] for row in dead
        ]
        assert {
            (row["delivery"], row["stream"], row["query"], row["reason"])
            for row in dead
        } == {("d", "s", "qa", "http_422")}
        assert dead[2]["details"].endswith("never o21")
        (alert,) = read_alerts(home)
        assert (alert.level, alert.text) == (
            "warning",
            f"changes are dead letters: {dead[0]['details']}",
        )


@pytest.mark.spec("X7", "X6")
def test_dead_letters_are_there_once_also_when_they_were_not_noted(
    tmp_path, monkeypatch
):
    home = prepare(tmp_path, ("qa",))
    some_changes(home, 12)
    with http_receiver(
        lambda changes: Answer(status=400 if changes[0]["object"] == "o4" else 200)
    ) as receiver:
        delivery = settings(receiver.url, batch_rows=1)

        class CrashError(Exception):
            pass

        def crash(*_, **__):
            raise CrashError

        with monkeypatch.context() as patch:
            patch.setattr(deliver_module, "write_progress", crash)
            with pytest.raises(CrashError):
                deliver(home, delivery, until_idle=True)
        real = deliver_module.write_progress
        with (
            monkeypatch.context() as patch
        ):  # dies when the dead letter is stored and not yet noted
            patch.setattr(
                deliver_module,
                "write_progress",
                lambda folder, progress: (
                    crash() if progress.dead_letters else real(folder, progress)
                ),
            )
            with pytest.raises(CrashError):
                deliver(home, delivery, until_idle=True)
        deliver(home, delivery, until_idle=True)
        assert first_times(taken_ids(receiver)) == [
            own for own in all_ids(home) if "/o4/" not in own
        ]
    assert len(tables.read(home.table("dead_letters"))) == 1


def test_without_dead_letters_a_refused_change_stops_the_delivery(tmp_path):
    home = prepare(tmp_path, ("qa",))
    some_changes(home)
    with http_receiver(
        lambda changes: Answer(status=410 if "o7" in str(changes) else 200)
    ) as receiver:
        with pytest.raises(
            FairwayError, match=r"qa/1/o7/~/.* was refused: 410"
        ) as error:
            deliver(home, settings(receiver.url, dead_letter=False), until_idle=True)
        assert error.value.exit_code == 2
        assert not tables.exists(home.table("dead_letters"))
        receiver.judge = lambda _: Answer()
        deliver(home, settings(receiver.url, dead_letter=False), until_idle=True)
        assert first_times(taken_ids(receiver)) == all_ids(home)


def test_a_receiver_that_is_away_ends_a_run_until_idle_and_loses_nothing(tmp_path):
    home = prepare(tmp_path)
    some_changes(home)
    with http_receiver() as receiver:
        receiver.stop()
        with pytest.raises(
            TransientError, match=r"ConnectError at http://127.*nothing is lost"
        ):
            deliver(home, settings(receiver.url), until_idle=True)
        receiver.start()
        deliver(home, settings(receiver.url), until_idle=True)
        assert taken_ids(receiver) == all_ids(home)


def test_it_stops_when_it_is_asked_to_also_while_it_waits(tmp_path, monkeypatch):
    monkeypatch.setattr(deliver_module, "ALERT_S", 0.2)
    home = prepare(tmp_path)
    some_changes(home)
    with http_receiver(lambda _: Answer(status=500)) as receiver:
        results = []
        work = threading.Thread(
            target=lambda: results.append(
                deliver(home, settings(receiver.url, retry_max_s=0.1), until_idle=False)
            )
        )
        work.start()
        while not read_alerts(home):
            time.sleep(0.01)
        (home.delivery("d") / "stop").touch()
        work.join(timeout=20)
        assert (results[0].delivered, results[0].failed_tries > 1) == (0, True)
        (home.delivery("d") / "stop").unlink()
        receiver.judge = lambda _: Answer()
        deliver(home, settings(receiver.url), until_idle=True)
        assert taken_ids(receiver) == all_ids(home)
    (alert,) = read_alerts(home)
    assert (alert.stream, alert.level) == ("delivery d", "error")
    assert "500" in alert.text


def test_a_delivery_has_one_process_and_one_stream(tmp_path):
    home = prepare(tmp_path)
    some_changes(home)
    with http_receiver() as receiver:
        deliver(home, settings(receiver.url), until_idle=True)
        with pytest.raises(
            ConfigError, match="has delivered stream 's', and now shall deliver 'other'"
        ):
            deliver(home, settings(receiver.url, stream="other"), until_idle=True)
        folder = home.delivery("d")
        foreign = lease.take(folder, now_us=time.time_ns() // 1000)
        record = read_record(folder / "lease.json") or {}
        record |= {
            "pid": 1,
            "started_s": lease.this_process().started_s,
            "host": "elsewhere",
            "boot": "another",
        }
        (folder / "lease.json").write_text(json.dumps(record))
        with pytest.raises(
            FencedError, match="delivery 'd' is run by process 1 on elsewhere"
        ):
            deliver(home, settings(receiver.url), until_idle=True)
        assert foreign.epoch == 3


def test_a_new_delivery_can_begin_now(tmp_path):
    home = prepare(tmp_path)
    some_changes(home)
    fixes(home, "late,60,1,1")
    run_engine(home, commit=False)
    with http_receiver() as receiver:
        delivery = settings(receiver.url, start="now")
        assert deliver(home, delivery, until_idle=True).delivered == 0
        fixes(home, "later,61,1,1")
        run_engine(home)
        deliver(home, delivery, until_idle=True)
        assert {change["object"] for change in receiver.taken} == {"later"}
        assert len(receiver.taken) == len(QUERIES)


def test_reprocessed_history_is_not_delivered(tmp_path):
    home = prepare(tmp_path)
    some_changes(home)
    path, contract = home.table("changes", "s"), load_contract("changes")
    with http_receiver() as receiver:
        deliver(home, settings(receiver.url), until_idle=True)
        before = list(receiver.taken)
        tables.replace(path, tables.read(path), contract)  # history written again
        assert deliver(home, settings(receiver.url), until_idle=True).delivered == 0
        assert receiver.taken == before


@pytest.mark.spec("X7", "X6")
@given(
    st.lists(
        st.sampled_from(["batch", "commit", "store", "crash", "compact"]), max_size=12
    ),
    st.integers(1, 5),
)
def test_ids_stay_however_changes_are_committed(tmp_path_factory, actions, rows):
    """Ids from the journal, from the table, after crashes, after compaction and of another run: all the same."""
    homes = [prepare(tmp_path_factory.mktemp("ids"), ("qa", "qb")) for _ in range(2)]
    for home in homes:
        for start in range(0, 20, rows):
            fixes(
                home,
                *(
                    f"o{n % 4},{n},{9 * (n % 3 == 0)},1"
                    for n in range(start, min(start + rows, 20))
                ),
            )
    home, calm = homes
    engine, follower, seen = LocalEngine(home, STREAM), Follower(home, "s"), []
    for action in actions:
        if action == "crash":
            engine.abandon()
            engine = LocalEngine(home, STREAM)
        elif action == "compact":
            if tables.exists(home.table("changes", "s")):
                tables.compact(home.table("changes", "s"), before=None)
        else:
            getattr(engine, action)()
        seen.append(follower.poll())
    while engine.batch():
        pass
    seen.append(follower.poll())
    engine.close()
    run_engine(calm)
    ids = change_ids(pa.concat_tables(seen)).to_pylist()
    assert ids == all_ids(home) == all_ids(calm)
    assert len(set(ids)) == len(ids) > 0


@given(
    st.integers(1, 200),
    st.floats(0.01, 1000),
    st.one_of(st.none(), st.floats(0, 10_000)),
    st.randoms(),
)
def test_pauses_grow_and_are_bounded(failures, most_s, asked_s, chance):
    pause = pause_s(failures, most_s=most_s, asked_s=asked_s, chance=chance)
    assert 0 < pause <= most_s
    assert pause >= min(asked_s or 0, most_s)
    assert asked_s is not None or pause <= 0.25 * 2.0 ** (failures - 1)
    assert pause >= min(most_s, 0.25 * 2.0 ** min(failures - 1, 60)) / 2
