"""A YAML file of which every place knows its line, so that an error can name it."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from st_common.errors import ContractError

# In C where PyYAML has it, as in its wheels: ten times as fast.
_LOADER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader

Place = tuple[str | int, ...]  # the keys and indexes on the way to a value


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The value of a YAML file, and where each part of it stands.

    Attributes:
        path: the file.
        value: what it says.
        lines: the line (from 1) of every key and list item, by the keys and indexes on the way to it.
    """

    path: Path
    value: dict[str, Any]
    lines: Mapping[Place, int]

    def line(self, place: Place) -> int:
        """The line of a place, or of the nearest place above it that the file holds."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)

    def error(
        self, place: Place, rule: str, message: str, *, hint: str = ""
    ) -> ContractError:
        """The error for a rule that was broken: `FILE:LINE: RULE: MESSAGE`.

        Args:
            place: where.
            rule: the name of the rule, such as `odcs`.
            message: what is wrong, with the value.
            hint: what to do.
        """
        return ContractError(
            f"{self.path}:{self.line(place)}: {rule}: {message}", hint=hint
        )

    def at(self, place: Place) -> Any:
        """What stands at a place; None when nothing does.

        Args:
            place: the keys and indexes on the way: `("schema", 0, "name")`.
        """
        value: Any = self.value
        for key in place:
            if isinstance(value, dict):
                value = value.get(str(key))
            elif isinstance(value, list) and isinstance(key, int) and key < len(value):
                value = value[key]
            else:
                return None
        return value

    def items(self, place: Place) -> list[Place]:
        """The places of the items of a list; none when there is no list.

        Raises:
            ContractError: something else than a list stands there (rule `odcs`).
        """
        value = self.at(place)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.error(place, "odcs", f"{place[-1]} must be a list")
        return [(*place, index) for index in range(len(value))]

    def mapping(self, place: Place) -> dict[str, Any]:
        """The mapping at a place.

        Raises:
            ContractError: something else, or nothing, stands there (rule `odcs`).
        """
        value = self.at(place)
        if not isinstance(value, dict):
            raise self.error(
                place, "odcs", f"{place[-1]} must be a mapping of keys and values"
            )
        return value


def read_document(path: Path) -> Document:
    """The document in a file.

    Raises:
        ContractError: the file cannot be read, is no YAML (rule `yaml`), has a key twice (rule `duplicate-key`) or
            is no mapping.
    """
    try:
        loader = _LOADER(path.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        value = loader.construct_document(node) if node is not None else None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ContractError(
            f"{path}:{mark.line + 1 if mark else 1}: yaml: {error.problem}"
        ) from None
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ContractError(f"{path}:1: yaml: cannot be read: {error}") from None
    if node is None or not isinstance(value, dict):
        raise ContractError(
            f"{path}:1: yaml: a contract is a mapping of keys and values"
        )
    lines: dict[Place, int] = {}
    _number(node, (), lines, path)
    return Document(path=path, value=value, lines=lines)


def near(word: object, known: Iterable[str]) -> str:
    """The hint for a word that is not known: the word that may have been meant, or all that are known."""
    known = list(known)
    meant = difflib.get_close_matches(str(word), known, n=1)
    return f"did you mean {meant[0]!r}?" if meant else f"known: {', '.join(known)}"


def _number(node: yaml.Node, place: Place, lines: dict[Place, int], path: Path) -> None:
    lines.setdefault(place, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*place, str(key.value))
            if inner in lines:
                raise ContractError(
                    f"{path}:{key.start_mark.line + 1}: duplicate-key: {key.value!r} is there twice"
                )
            lines[inner] = key.start_mark.line + 1
            _number(value, inner, lines, path)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            _number(value, (*place, index), lines, path)
