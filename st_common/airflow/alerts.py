"""Alerts of the supervisor in Airflow: whose task is red, and a notifier that is told."""

from collections.abc import Mapping
from typing import Any

from airflow.sdk import BaseNotifier, get_current_context
from airflow.sdk.exceptions import AirflowFailException
from airflow.sdk.module_loading import import_string

from st_common.config.redaction import redacted


def errors_of(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The alerts of level error in a supervisor's summary: of which stream, and the text, without secrets."""
    return [
        (alert["stream"], redacted(alert["text"]))
        for alert in summary.get("alerts") or []
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


def notify(summary: Mapping[str, Any], text: str) -> None:
    """Tells the notifier of the settings, where there is one.

    Args:
        summary: what the supervisor printed.
        text: what happened.

    Raises:
        AirflowFailException: the notifier of the settings is wrong.
    """
    notifier = notifier_in(summary)
    if notifier is not None:
        notifier({**get_current_context(), "alerts": text})
