"""Which kind a feature is, by its tags: the rules of `conf/layers.toml`."""

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from st_common.config.environment import DEFAULT_CONF
from st_common.config.keys import Place, key, of_table, read_toml, tables_of
from st_common.config.values import WrongError, one_of, takes, words
from st_common.errors import ConfigError
from st_common.installed import shipped

Geometry = Literal["area", "line", "point"]
GEOMETRIES: tuple[Geometry, ...] = get_args(Geometry)
OTHER = "other"  # the kind of a feature that no rule matches, but for OpenStreetMap's
_CLASS: Mapping[str, Geometry] = {
    "Polygon": "area",
    "LineString": "line",
    "Point": "point",
}


def _tag(text: str) -> tuple[str, str | None]:
    name, equals, value = text.partition("=")
    return name, value if equals else None


@takes(
    'a list such as `["natural=wood", "building"]`',
    type="array",
    items={"type": "string", "minLength": 1},
    minItems=1,
)
def _tags(value: object) -> tuple[tuple[str, str | None], ...]:
    tags = words(value)
    if not all(tags):
        raise WrongError("has an empty tag")
    return tuple(map(_tag, tags))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Says that features of a geometry with one of some tags are of a kind.

    Attributes:
        kind: the kind.
        geometry: area (closed ways and multipolygon relations), line (ways) or point (nodes). A closed way may be a
            line by one rule and an area by another: then it is two features, way/1 and way/1/area.
        tags: "key" (any value) or "key=value"; one of them is enough.
    """

    kind: str
    geometry: Geometry = field(metadata=key(one_of(*GEOMETRIES)))
    tags: tuple[tuple[str, str | None], ...] = field(metadata=key(_tags))


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
        document, place = read_toml(file)
    except FileNotFoundError as error:
        raise ConfigError(
            f"{file} cannot be read: {error.strerror}",
            hint="it says which tags make a kind",
        ) from None
    kinds = tables_of(document, "kinds", place)
    if not kinds:
        raise ConfigError(
            f"{file} names no kinds",
            hint="write tables such as [kinds.park] with geometry and tags",
        )
    return Kinds(
        tuple(
            _rule(kind, table, place.below("kinds", kind, called=f"kind {kind!r}:"))
            for kind, table in kinds.items()
        )
    )


def _file_of(conf: Path) -> Path:
    """The file of the rules; a folder that somebody named and that does not exist has none."""
    if not conf.is_dir() and conf != DEFAULT_CONF:
        return conf
    own = conf / "layers.toml"
    return own if own.exists() else shipped("conf/layers.toml")


def _rule(kind: str, table: Any, place: Place) -> Rule:
    if not isinstance(table, dict):
        raise place.wrong(f"{table!r} is no table", hint=f"write [kinds.{kind}]")
    return of_table(Rule, table, place, given={"kind": kind})


def _nearest(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), 1)
    return f"did you mean {near[0]!r}?" if near else "known are " + ", ".join(known)
