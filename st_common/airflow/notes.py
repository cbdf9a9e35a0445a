"""Notes of runs in Airflow's page: what the jobs of a run said, below its name, without opening a task.

A task cannot write the note of its run: it has no database, and REST would want a password of it. So each task hands on
a line of text, and the scheduler, which ends the run, puts them together. It reads Airflow's own tables, to which there
is no public interface: tried on Airflow 3.3.2.

    task `convert`: {"features": 120, "rejected": 2}  ->  "convert: features 120, rejected 2"    by its operator
    run of `convert` and `tell`                       ->  both lines, in the order of time       by the scheduler
"""

from collections.abc import Iterator, Mapping
from typing import Any

from airflow.listeners import hookimpl

NOTE = "fairway_note"
"""The key of a task's line among what tasks hand on."""
LONGEST = 1000
"""Airflow stores no longer notes."""


def line_of(summary: Mapping[str, Any], failure: str = "") -> str:
    """What a job's summary says in a line; "" for one without numbers or words.

        {"version": 3, "cleared": {"files": 7}, "days": [A, B], "path": C}   ->   version 3, cleared files 7, days 2

    Args:
        summary: as the job printed it. Paths are left out: reports have buttons of their own.
        failure: why the task failed; it comes first.
    """
    said = [failure, *(f"{name} {value}" for name, value in _values(summary))]
    return ", ".join(filter(None, said))


def _values(summary: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Each name with its value, names of parts behind that of the whole; of a list its length."""
    for key, value in summary.items():
        name = f"{above} {key}".strip()
        if isinstance(value, Mapping):
            yield from _values(value, name)
        elif isinstance(value, list):
            yield name, len(value)
        elif value not in (None, "") and key != "path":
            yield name, value


@hookimpl
def on_dag_run_success(dag_run: Any, msg: str) -> None:  # noqa: ARG001 - Airflow's signature
    """Notes what the jobs of a run said."""
    write_note(dag_run)


@hookimpl
def on_dag_run_failed(dag_run: Any, msg: str) -> None:  # noqa: ARG001 - Airflow's signature
    """Notes what the jobs of a run said, and which of them failed."""
    write_note(dag_run)


def write_note(dag_run: Any) -> None:
    """Puts the lines of a run's tasks into its note, in the scheduler's own transaction.

    A run that was cleared ends again, with other lines: ours are written anew, a person's note stays.
    """
    from airflow.models.xcom import XComModel
    from sqlalchemy import select
    from sqlalchemy.orm import object_session

    session = object_session(dag_run)
    written = dag_run.dag_run_note
    if session is None or (written is not None and written.user_id is not None):
        return
    of_run = (
        select(XComModel)
        .where(
            XComModel.dag_id == dag_run.dag_id,
            XComModel.run_id == dag_run.run_id,
            XComModel.key == NOTE,
        )
        .order_by(XComModel.timestamp)
    )
    lines = [
        f"{row.task_id}: {XComModel.deserialize_value(row)}"
        for row in session.scalars(of_run)
    ]
    if lines:
        dag_run.note = "\n\n".join(lines)[:LONGEST]
