"""A job as a DAG calls it: a name, a program in `jobs/`, and its arguments. The standard library only."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from st_common.airflow.place import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One call of a job.

    Attributes:
        name: the task's id.
        job: the program, a module of `jobs/`.
        arguments: words of its command line, which may hold templates. An option is one word,
            `--group={{ params.group }}`, so that a value from a form can never become an option of its own; one whose
            value is empty is left out.
    """

    name: str
    job: str
    arguments: tuple[str, ...] = ()

    def argv(self, place: Place) -> list[str]:
        """The command line, word by word; no shell reads it.

            partition, ("--group=a", "--source=")   ->   PYTHON -m jobs.partition --home HOME --conf CONF --group=a

        Args:
            place: the installation.
        """
        given = [
            word
            for word in self.arguments
            if word and not (word.startswith("--") and word.endswith("="))
        ]
        places = ["--home", str(place.home), "--conf", str(place.conf)]
        return [str(place.python), "-m", f"jobs.{self.job}", *places, *given]


def summary_of(lines: Sequence[str]) -> dict[str, Any]:
    """The summary that a job printed: its last line that is a JSON object; {} when there is none.

    Args:
        lines: the last lines of its output, in order.
    """
    for line in reversed(lines):
        if line.startswith("{"):
            try:
                return dict(json.loads(line))
            except ValueError:
                continue
    return {}
