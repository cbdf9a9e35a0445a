"""A task for each stream that waits, without a worker, until the home has something to be done.

    tick restarted taxis, which was dead  ->  watch taxis is red and tells the notifier; the next run begins
    tick finds all as it should be        ->  each watch waits; a look each twenty seconds, one for all of them
    a look finds: bikes is dead           ->  all end, the next run's tick restarts it
    a run by hand waits for its turn      ->  all end, it begins

The look is a process of the jobs' own Python, which the triggerer starts; it writes down how streams are and acts on
nothing.
"""

import asyncio
import json
import logging
import os
import time
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Any

from airflow.sdk import AssetAlias, BaseOperator, task
from airflow.sdk.exceptions import AirflowFailException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from st_common.airflow.alerts import errors_of, notifier_in, notify
from st_common.airflow.assets import LATE
from st_common.airflow.installation import find_installation, job_environment
from st_common.airflow.notes import NOTE
from st_common.config.redaction import redacted
from st_common.errors import ConfigError

HOME = "home"
"""What is watched beside streams and deliveries: there is always one, so that a run never ends at once."""
EVERY_S = 20.0
_POLL_S = 3.0
_LOOK_S = 120.0
LONGEST_S = 3600.0
"""After so long a run ends though nothing happened."""
_LOG = logging.getLogger(__name__)
_LATE = AssetAlias("fairway_late_fixes")


@task(retries=0, outlets=[_LATE])
def wards(summary: Mapping[str, Any], *, outlet_events: Any = None) -> list[str]:
    """What is watched: the home, its streams, and its deliveries as "delivery NAME"; tells of late fixes.

    Args:
        summary: what a tick of the supervisor printed.
        outlet_events: as Airflow gives them.

    Raises:
        AirflowFailException: the notifier of the settings is wrong, which is told before it is needed.
    """
    notifier_in(summary)
    if summary.get("late"):
        outlet_events[_LATE].add(LATE, extra={"streams": summary["late"]})
    return [HOME, *_named(summary)]


def _named(summary: Mapping[str, Any]) -> list[str]:
    deliveries = (f"delivery {name}" for name in summary["deliveries"])
    return [*sorted(summary["streams"]), *deliveries]


class WatchOperator(BaseOperator):
    """Fails where a tick raised an error about one stream; else waits until something must be done, in any of them.

    Args:
        ward: "home", a stream, or "delivery NAME".
        summary: what the tick printed.
        **kwargs: what Airflow's operators take.
    """

    template_fields = ("summary",)

    def __init__(self, *, ward: str, summary: Mapping[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.ward = ward
        self.summary = summary

    def execute(self, context: Mapping[str, Any]) -> str:
        """Fails, ends or begins to wait.

        Args:
            context: of the run, as Airflow gives it.

        Returns:
            Why it ended.

        Raises:
            AirflowFailException: an alert of level error concerns what is watched; or the notifier of the settings is
                wrong.
            TaskDeferred: it waits.
        """
        errors, named = errors_of(self.summary), _named(self.summary)
        mine = [
            text
            for name, text in errors
            if self.ward == (name if name in named else HOME)
        ]
        if mine:
            text = "; ".join(mine)
            context["ti"].xcom_push(key=NOTE, value=f"{self.ward}: {text}")
            notify(self.summary, f"{self.ward}: {text}")
            raise AirflowFailException(text)
        if errors:
            return "another one became worse"
        if context["dag_run"].run_type != "scheduled":
            return "looked once"
        try:
            place = find_installation()
        except ConfigError as error:
            raise AirflowFailException(str(error)) from None
        module = ("-m", "st_common.processes.supervise", "--look")
        self.defer(
            trigger=HomeTrigger(
                argv=[str(place.python), *module, *place.places],
                dag_id=context["dag_run"].dag_id,
                until_s=time.time_ns() / 1e9 + LONGEST_S,
            ),
            method_name="end",
            timeout=timedelta(seconds=1.25 * LONGEST_S),
        )
        raise AssertionError  # `defer` does not come back

    def end(self, context: Mapping[str, Any], event: str) -> str:
        """Ends when the trigger has found something.

        Args:
            context: of the run, as Airflow gives it.
            event: what.

        Returns:
            The same.
        """
        del context
        return event


class HomeTrigger(BaseTrigger):
    """Looks at a home again and again, and fires once something must be done.

    Args:
        argv: the program that looks, word by word.
        dag_id: whose runs by hand are made room for.
        until_s: when it fires in any case, seconds since 1970.
        every_s: how far looks are apart.
    """

    def __init__(
        self, *, argv: list[str], dag_id: str, until_s: float, every_s: float = EVERY_S
    ) -> None:
        super().__init__()
        self.argv = argv
        self.dag_id = dag_id
        self.until_s = until_s
        self.every_s = every_s

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """What makes it again in any triggerer."""
        given = ("argv", "dag_id", "until_s", "every_s")
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {name: getattr(self, name) for name in given},
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Waits, and says what there is to be done."""
        why = ""
        while not why:
            await asyncio.sleep(_POLL_S)
            why = await _LOOKS.newest(self.argv, self.dag_id, self.every_s)
            if time.time_ns() / 1e9 >= self.until_s:
                why = why or "nothing happened"
        yield TriggerEvent(why)


def _waiting(dag_id: str) -> int:
    """How many runs of a DAG wait for the end of this one; 0 while Airflow does not answer."""
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    try:
        return int(RuntimeTaskInstance.get_dr_count(dag_id=dag_id, states=["queued"]))
    except Exception:  # noqa: BLE001 - see below
        # It says that in many ways, and a trigger that ends by one turns a run red in which nothing is wrong.
        _LOG.exception("Airflow does not say which runs of %s wait", dag_id)
        return 0


class _Looks:
    """One look at a time, whoever asks: all triggers of a triggerer share the newest one."""

    def __init__(self) -> None:
        self._locks: dict[tuple[str, ...], asyncio.Lock] = {}
        self._newest: dict[tuple[str, ...], tuple[float, str]] = {}

    async def newest(self, argv: list[str], dag_id: str, every_s: float) -> str:
        """Why those who wait are to end, as the newest look found it; "" for nothing.

        Args:
            argv: the program that looks.
            dag_id: whose runs by hand are made room for.
            every_s: a look that is older is made anew; one that found something as soon as all have seen it.
        """
        key = tuple(argv)
        async with self._locks.setdefault(key, asyncio.Lock()):
            at_s, found = self._newest.get(key, (float("-inf"), ""))
            if time.monotonic() - at_s >= (2 * _POLL_S if found else every_s):
                is_waited_for = await asyncio.to_thread(_waiting, dag_id)
                found = "a run by hand waits" if is_waited_for else await _look(argv)
                self._newest[key] = (time.monotonic(), found)
            return found


_LOOKS = _Looks()


async def _look(argv: list[str]) -> str:
    """What a look finds to be done, in a line; of one that failed, why."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        env=job_environment(os.environ),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), timeout=_LOOK_S)
    except (TimeoutError, asyncio.CancelledError) as error:
        process.kill()
        await process.wait()
        if isinstance(error, asyncio.CancelledError):
            raise
        return f"a look took more than {_LOOK_S:.0f} s"
    if process.returncode:
        lines = err.decode(errors="replace").splitlines() or ["it says nothing"]
        return redacted(f"a look ended with code {process.returncode}: {lines[-1]}")
    seen = json.loads(out.splitlines()[-1])
    found = [
        f"{one['stream']}: {one.get('kind', one.get('text'))}"
        for one in (*seen["actions"], *seen["alerts"])
    ]
    return redacted("; ".join(found))
