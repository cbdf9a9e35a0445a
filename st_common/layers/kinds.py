"""Which kind a feature is, by its tags: the rules of `conf/layers.toml`."""

import difflib
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from st_common.errors import ConfigError
from st_common.installed import shipped
from st_common.settings import DEFAULT_CONF
from st_common.toml_values import (
    Check,
    WrongError,
    checked,
    known,
    one_of,
    takes,
    words,
)

Geometry = Literal["area", "line", "point"]
GEOMETRIES: tuple[Geometry, ...] = get_args(Geometry)
OTHER = "other"  # the kind of a feature that no rule matches, but for OpenStreetMap's
_CLASS: Mapping[str, Geometry] = {
    "Polygon": "area",
    "LineString": "line",
    "Point": "point",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Says that features of a geometry with one of some tags are of a kind.

    Attributes:
        kind: the kind.
        geometry: area, line or point.
        tags: pairs of name and value; None stands for any value. One that matches is enough.
    """

    kind: str
    geometry: Geometry
    tags: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class Kinds:
    """The rules in their order; the first one that matches names the kind."""

    rules: tuple[Rule, ...]

    def of(self, tags: Mapping[str, str], geometry: Geometry) -> str | None:
        """The kind of a feature; None when no rule matches.

            rules park (area, leisure=park), building (area, building)
            {"leisure": "park", "building": "yes"}, area   ->   park, for its rule comes first
            {"building": "yes"}, line                      ->   None

        Args:
            tags: the feature's tags.
            geometry: area, line or point.
        """
        for rule in self.rules:
            if rule.geometry == geometry and any(
                key in tags and value in (None, tags[key]) for key, value in rule.tags
            ):
                return rule.kind
        return None

    def named_or_of(self, tags: Mapping[str, str], geometry_type: str) -> str:
        """The kind of a feature that may name its own by the tag "kind"; `other` when no rule matches either.

        Args:
            tags: the feature's tags.
            geometry_type: as GeoJSON has it, such as MultiPolygon.
        """
        geometry = _CLASS.get(geometry_type.removeprefix("Multi"))
        of_rules = self.of(tags, geometry) if geometry else None
        return tags.get("kind") or of_rules or OTHER

    def keys(self) -> frozenset[str]:
        """All keys that some rule looks at: a feature with none of them has no kind."""
        return frozenset(key for rule in self.rules for key, _ in rule.tags)

    def only(self, kinds: Iterable[str] | None) -> "Kinds":
        """The same rules, of these kinds alone; all of them for None.

        Raises:
            ConfigError: a kind that no rule names.
        """
        if kinds is None:
            return self
        wanted, all_kinds = set(kinds), [rule.kind for rule in self.rules]
        for kind in sorted(wanted - set(all_kinds)):
            raise ConfigError(
                f"no kind {kind!r} in conf/layers.toml", hint=_nearest(kind, all_kinds)
            )
        return Kinds(tuple(rule for rule in self.rules if rule.kind in wanted))


def tags_of(properties: Mapping[str, Any]) -> dict[str, str]:
    """The properties of a feature as tags: texts as they are, other values as JSON, null not at all.

    What JSON does not have, as a date, is the text that Python makes of it.
    """
    return {
        key: value
        if isinstance(value, str)
        else json.dumps(value, ensure_ascii=False, default=str)
        for key, value in properties.items()
        if value is not None
    }


def load_kinds(conf: Path) -> Kinds:
    """The rules of `conf`/layers.toml (or of the file `conf`), in the order of the file.

    Of a folder without that file, and where nobody has made `./conf`, those that came with the package.

    Raises:
        ConfigError: it cannot be read, is no TOML, or a wrong or unknown key, named with the file and the kind.
    """
    file = _file_of(conf)
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"{file} cannot be read: {error.strerror}",
            hint="it says which tags make a kind",
        ) from None
    except (ValueError, RecursionError) as error:  # too long a number too
        raise ConfigError(f"{file} is no TOML: {error}") from None
    known(document, ("kinds",), f"{file}:")
    kinds = document.get("kinds", {})
    if not isinstance(kinds, dict) or not kinds:
        raise ConfigError(
            f"{file} names no kinds",
            hint="write tables such as [kinds.park] with geometry and tags",
        )
    return Kinds(
        tuple(
            _rule(kind, table, f"{file}, kind {kind}") for kind, table in kinds.items()
        )
    )


def _file_of(conf: Path) -> Path:
    """The file of the rules; a folder that somebody named and that does not exist has none."""
    if not conf.is_dir() and conf != DEFAULT_CONF:
        return conf
    own = conf / "layers.toml"
    return own if own.exists() else shipped("conf/layers.toml")


def _rule(kind: str, table: Any, where: str) -> Rule:
    if not isinstance(table, dict):
        raise ConfigError(
            f"{where}: {table!r} is no table", hint=f"write [kinds.{kind}]"
        )
    values = checked(table, RULE_KEYS, Rule, f"{where}:")
    tags = tuple(_tag(tag) for tag in values["tags"])
    return Rule(kind=kind, geometry=values["geometry"], tags=tags)


@takes('a list such as `["natural=wood", "building"]`')
def _tags(value: object) -> tuple[str, ...]:
    tags = words(value)
    if not all(tags):
        raise WrongError("has an empty tag")
    return tags


RULE_KEYS: Mapping[str, Check] = {"geometry": one_of(*GEOMETRIES), "tags": _tags}
"""What each key of a rule may be; both must be there."""


def _tag(text: str) -> tuple[str, str | None]:
    key, equals, value = text.partition("=")
    return key, value if equals else None


def _nearest(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), 1)
    return f"did you mean {near[0]!r}?" if near else "known are " + ", ".join(known)
