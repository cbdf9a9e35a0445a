"""What a run is mapped over: the streams of the home, the layers of a form, the days that a plan names.

A task of each is an instance of its own, so that what one stream or layer fails at is red for that one alone.
"""

from collections.abc import Mapping
from typing import Any

from airflow.sdk import Param, task
from airflow.sdk.exceptions import AirflowFailException

from st_common.airflow.installation import find_installation
from st_common.config.home import NAME_PATTERN, Home
from st_common.config.streams import broken_of
from st_common.errors import FairwayError
from st_common.query.created_streams import known_streams

LAYERS = Param(
    type="array",
    title="Layers",
    description="A line for each layer: its name for all kinds of conf/layers.toml, or NAME=KIND,KIND.",
    items={
        "type": "string",
        "pattern": f"^{NAME_PATTERN}(=({NAME_PATTERN})(,{NAME_PATTERN})*)?$",
    },
    minItems=1,
    uniqueItems=True,
)
"""The field of a form that names layers: parks=park,forest."""


@task(retries=0)
def streams(option: str, params: Mapping[str, Any]) -> list[list[str]]:
    """The streams that a form names, else those of the home, as words of a program: [["--stream=buses"], ..].

    One whose settings are wrong is among them: its own task says so.

    Args:
        option: what stands before the name, `--stream=`.
        params: the form, which may have a field `stream`.

    Raises:
        AirflowFailException: there is no installation, or no such settings.
    """
    try:
        place = find_installation()
        known = known_streams(Home(place.home), place.conf)
    except FairwayError as error:
        raise AirflowFailException(str(error)) from None
    names = params.get("stream") or [*known, *broken_of(known)]
    return [[f"{option}{name}"] for name in names]


@task(retries=0)
def layers(params: Mapping[str, Any]) -> list[list[str]]:
    """The layers that a form names, each as the words that a program takes: [["parks", "--kinds=park,forest"]].

    Args:
        params: the form, with its field `layers`.
    """
    named = (text.partition("=") for text in params["layers"])
    return [[name, f"--kinds={kinds}"] for name, _, kinds in named]


@task(retries=0)
def runs(plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What `reprocess --plan` names, each as what its task takes.

    Args:
        plan: the summary: `runs`, each with stream, days and engine.
    """
    return [
        {
            "more": [run["stream"], f"--from={run['from']}", f"--to={run['to']}"],
            "engine": run["engine"],
        }
        for run in plan["runs"]
    ]
