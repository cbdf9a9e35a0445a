"""One thing that is wrong with a clause of a plan."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """What is wrong with a clause of a statement (`at`)."""

    at: str
    message: str
    hint: str
