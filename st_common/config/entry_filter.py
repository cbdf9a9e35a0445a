"""Which records may be fixes at all, as a stream's key `where` says it (SPEC X16)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["string", "double", "bool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """What is joined by AND with others.

    Attributes:
        text: as people wrote it, in canonical form: by this it is counted.
        sql: over columns called c0, c1, ..: what the database evaluates.
    """

    text: str
    sql: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFilter:
    """A condition on the columns of raw records; what fails it is a reject `filtered_out`.

        _type = 'location' AND valid      c0 = 'location', c1      c0 is _type as a text, c1 is valid as a bool

    Attributes:
        text: the whole condition.
        clauses: its parts, all of which must be true.
        columns: the column of the records, and the type, that each of c0, c1, .. is.
    """

    text: str
    clauses: tuple[Clause, ...]
    columns: tuple[tuple[str, Kind], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the records that it names, each once."""
        return tuple(dict.fromkeys(name for name, _ in self.columns))


def entry_filter_of_json(value: Mapping[str, Any]) -> EntryFilter:
    """The filter that JSON says, as `dataclasses.asdict` and `json.dumps` give it.

    Raises:
        KeyError, TypeError, ValueError: it is of another form.
    """
    return EntryFilter(
        text=str(value["text"]),
        clauses=tuple(Clause(**one) for one in value["clauses"]),
        columns=tuple((name, kind) for name, kind in value["columns"]),
    )
