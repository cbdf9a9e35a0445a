"""Makes a supervisor's new alerts visible in Airflow: the run in which one was raised is red."""

from collections.abc import Mapping
from typing import Any

from airflow.sdk import task
from airflow.sdk.exceptions import AirflowFailException

from st_common.redaction import redacted


def errors_in(summary: Mapping[str, Any]) -> list[str]:
    """The texts of the alerts of level error in a supervisor's summary, each with its stream, without secrets."""
    alerts = summary.get("alerts") or []
    return [
        redacted(f"{alert['stream']}: {alert['text']}")
        for alert in alerts
        if alert["level"] == "error"
    ]


@task(retries=0)
def raise_alerts(summary: Mapping[str, Any]) -> int:
    """Fails when a tick raised an error; an alert is raised once per change, so the next run is green again.

    Args:
        summary: what the supervisor's job printed last.

    Returns:
        How many alerts there are, of whatever level.

    Raises:
        AirflowFailException: with the texts of the errors.
    """
    errors = errors_in(summary)
    if errors:
        raise AirflowFailException("; ".join(errors))
    return len(summary.get("alerts") or [])
