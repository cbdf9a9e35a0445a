"""A standalone Spark cluster: whether it is there, and drivers on it, by its master's REST interface.

The cluster owns such a driver: whoever started it may die. It is not supervised there (`spark.driver.supervise`), for
who starts it again is the supervisor alone, which knows pauses, wrong settings and when to give up (docs/adr/0046).
"""

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

from st_common.config.spark import SparkSettings
from st_common.errors import TransientError

_CONNECT_S = 3.0  # each driver of a master that is away costs a tick so much
_READ_S = 30.0
_LIVING = ("SUBMITTED", "RUNNING", "RELAUNCHING")


class UnreachableError(TransientError):
    """Nobody answers where settings say that a cluster is."""


class RefusedError(TransientError):
    """A master answered that it does not take a driver."""


class Fate(StrEnum):
    """What a master says of a driver."""

    LIVES = "lives"
    """It waits for a worker, or runs."""
    GONE = "gone"
    """It ended, was killed, or the master does not know it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A driver that was handed to a master.

    Attributes:
        rest: the address of the master's REST interface.
        id: what the master calls it; "": the master's answer was lost.
        submitted_s: when it was handed over, seconds since 1970.
    """

    rest: str
    id: str
    submitted_s: float

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Submission | None":
        """The submission in a record, or None when the record names none."""
        try:
            return cls(
                rest=str(record["rest"]),
                id=str(record["submission"]),
                submitted_s=float(record["submitted_s"]),
            )
        except (KeyError, TypeError, ValueError):
            return None

    def to_json(self) -> dict[str, Any]:
        """A JSON object from which `from_json` makes the same."""
        return {
            "rest": self.rest,
            "submission": self.id,
            "submitted_s": self.submitted_s,
        }


def check_master(stream: str, place: SparkSettings) -> None:
    """Makes sure that somebody listens where a stream's tasks shall run, before a JVM tries it for minutes.

    Args:
        stream: its name.
        place: its settings; of several masters one is enough, and a local one needs none.

    Raises:
        UnreachableError: nobody does; the message names the key, and what each address answered.
    """
    if place.masters:
        setting = f"master = {place.master!r}"
        _check_listening(stream, setting, place.masters)


def check_rest(stream: str, place: SparkSettings) -> None:
    """As `check_master`, for the REST interface by which a cluster starts drivers."""
    if place.rest is not None:
        address = place.rest.removeprefix("http://")
        _check_listening(stream, f"rest = {place.rest!r}", (address,))


def _check_listening(stream: str, setting: str, addresses: Sequence[str]) -> None:
    answers = []
    for address in addresses:
        try:
            parts = urlsplit(f"//{address}")
            socket.create_connection(
                (parts.hostname, parts.port), timeout=_CONNECT_S
            ).close()
        except OSError as error:
            answers.append(f"{address}: {error.strerror or error}")
        else:
            return
    raise UnreachableError(
        f"stream {stream!r}: nothing answers at [streams.{stream}.spark] {setting}: {'; '.join(answers)}",
        hint="start that cluster, or correct the setting",
    )


def submit(
    place: SparkSettings, name: str, command: Sequence[str], *, python: str
) -> str:
    """Hands a driver to the master of a cluster.

    Args:
        place: its master and REST interface, and the memory of the driver.
        name: of the driver, for people.
        command: a Python file and its arguments, under names that the workers know.
        python: the Python that runs it, there too.

    Returns:
        The master's id of the driver.

    Raises:
        RefusedError: the master does not take it.
        TransientError: the master does not answer; it may have taken it all the same.
    """
    # Without the first words the inner spark-submit would run everything in the worker's process.
    words = ["--master", place.master, "--deploy-mode", "client", "--name", name]
    words += ["--driver-memory", place.memory, *command]
    request = {
        "action": "CreateSubmissionRequest",
        "clientSparkVersion": version("pyspark"),
        "mainClass": "org.apache.spark.deploy.SparkSubmit",
        "appResource": "",
        "appArgs": words,
        "environmentVariables": _environment(place, python),
        "sparkProperties": {
            "spark.app.name": name,
            "spark.master": place.master,
            "spark.submit.deployMode": "cluster",
            "spark.driver.memory": place.memory,
            "spark.driver.supervise": "false",
        },
    }
    answer = _asked(str(place.rest), "POST", "create", request)
    if not answer.get("success") or not answer.get("submissionId"):
        raise RefusedError(
            f"{place.rest} refuses a driver: {answer.get('message', answer)}",
            hint="see the master's log",
        )
    return str(answer["submissionId"])


def fate_of(submission: Submission) -> Fate:
    """What becomes of a driver.

    Raises:
        TransientError: the master does not answer.
    """
    answer = _asked(submission.rest, "GET", f"status/{submission.id}")
    return Fate.LIVES if answer.get("driverState") in _LIVING else Fate.GONE


def kill(submission: Submission) -> bool:
    """Kills a driver and the Python process below it; False when the master knows none that lives.

    Raises:
        TransientError: the master does not answer.
    """
    answer = _asked(submission.rest, "POST", f"kill/{submission.id}", {})
    return bool(answer.get("success"))


def _environment(place: SparkSettings, python: str) -> dict[str, str]:
    """What the driver is told by variables; no secrets, for they go over plain HTTP."""
    environment = {"PYSPARK_PYTHON": python, "SPARK_ENV_LOADED": "1"}
    if place.is_on_loopback:
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    return environment


def _asked(
    rest: str, method: str, what: str, body: Mapping[str, Any] | None = None
) -> Mapping[str, Any]:
    """The master's answer to one request, also where it is an error of the master."""
    import httpx

    try:
        answer = httpx.request(
            method,
            f"{rest}/v1/submissions/{what}",
            json=body,
            timeout=httpx.Timeout(_READ_S, connect=_CONNECT_S),
            trust_env=False,  # no proxies
        )
        return dict(answer.json())
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, TypeError) as error:
        raise TransientError(
            f"the master at {rest} does not answer: {type(error).__name__}",
            hint="the supervisor asks again",
        ) from None
