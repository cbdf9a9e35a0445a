"""Makes new alerts visible in Airflow: the run in which one was raised is red, and a notifier is told."""

from collections.abc import Mapping
from typing import Any

from airflow.sdk import BaseNotifier, get_current_context, task
from airflow.sdk.exceptions import AirflowFailException
from airflow.sdk.module_loading import import_string

from st_common.config.redaction import redacted


def errors_in(summary: Mapping[str, Any]) -> list[str]:
    """The texts of the alerts of level error in a supervisor's summary, each with its stream, without secrets."""
    alerts = summary.get("alerts") or []
    return [
        redacted(f"{alert['stream']}: {alert['text']}")
        for alert in alerts
        if alert["level"] == "error"
    ]


def notifier_in(summary: Mapping[str, Any]) -> BaseNotifier | None:
    """The notifier of the settings (`[notifier]` in operations.toml), as the summary hands it on; None without one.

    Raises:
        AirflowFailException: there is no such class, it is no notifier, or it does not take the arguments.
    """
    wanted = summary.get("notifier")
    if wanted is None:
        return None
    name = wanted["class"]
    try:
        made = import_string(name)(**wanted["arguments"])
    except Exception as error:
        raise AirflowFailException(f"operations.toml: {name}: {error}") from error
    if not isinstance(made, BaseNotifier):
        raise AirflowFailException(f"operations.toml: {name} is no notifier of Airflow")
    return made


@task(retries=0)
def raise_alerts(summary: Mapping[str, Any]) -> int:
    """Fails when a tick raised an error; an alert is raised once per change, so the next run is green again.

    Args:
        summary: what the supervisor's job printed last.

    Returns:
        How many alerts there are, of whatever level.

    Raises:
        AirflowFailException: with the texts of the errors; or the notifier of the settings is wrong.
    """
    notifier, errors = notifier_in(summary), errors_in(summary)
    if not errors:
        return len(summary.get("alerts") or [])
    text = "; ".join(errors)
    if notifier is not None:
        notifier({**get_current_context(), "alerts": text})
    raise AirflowFailException(text)
