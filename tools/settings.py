"""Writes what is made of the declarations of settings, by `make generate`.

docs/settings.md           each key with what it takes, its default and its meaning
conf/*.toml                the comment at their head that says the same; what else they hold stays
conf/schema/*.json         JSON schemas, which editors read

`--check` compares instead of writing.
"""

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from st_common.config.columns import Columns
from st_common.config.filters import FilterSettings
from st_common.config.keys import Key, keys_of
from st_common.config.operations import KeptDays, Limits, Notifier, ServerSettings
from st_common.config.position_filter import PositionFilter
from st_common.config.sources import KINDS, SourceSettings, takes_key
from st_common.config.spark import SparkSettings
from st_common.config.stream import StreamSettings
from st_common.config.values import OFF
from st_common.delivery.alerting import AlertSettings
from st_common.delivery.registry import SINKS
from st_common.delivery.settings import DELIVERY_KEYS
from st_common.delivery.webhook import WebhookSink
from st_common.layers.kinds import Rule
from st_common.lineage.settings import TIMEOUT_S, LineageSettings

Keys = Mapping[str, Key]
PAGE = Path("docs/settings.md")
CONF = Path("conf")
WIDTH = 120
MUST = "must be given"
HEAD = """# All settings

What people set lies in one folder, `conf` of the home or where `--conf` says; `fairway init` begins one.
A key that is unknown, missing or wrong is an error that names file, line, table and key. This page, the comments of the
files and the JSON schemas beside them, which editors read, are made of the code by `make generate`.

| variable of the environment | meaning |
|---|---|
| `FAIRWAY_HOME` | the home folder, where `--home` is not given |
| `FAIRWAY_CONF` | the folder of the settings, where `--conf` is not given |
| `FAIRWAY_CONTRACTS` | the folder of the [data contracts](data-contracts.md); else those that come with the package |
| `FAIRWAY_PAGE_URL` | the address of [the page](page.md) to which Airflow leads; else `http://127.0.0.1:8640` |
| `FAIRWAY_JARS` | the folder of Spark's jars; else `share/fairway/jars` of the Python environment |

Secrets stand in no file: keys called `token_env` name the variable that holds one. A meaning that begins with kinds,
such as `kafka, mqtt:`, says that the key is for these alone.
"""
_SECTION = re.compile(r"^# \[", re.MULTILINE)
_BLANK = "\0"  # one at which no line ends
_DRAFT = "http://json-schema.org/draft-07/schema#"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table of a file.

    Attributes:
        file: without `.toml`.
        name: with NAME or the like where people name it: `streams.NAME.columns`.
        text: what it is.
        keys: in the order in which they are shown.
        of_kinds: those that belong to some kinds, so that JSON Schema cannot ask for them.
        others: what JSON Schema says of keys beside these; None: there are none.
    """

    file: str
    name: str
    text: str
    keys: Keys
    of_kinds: Collection[str] = ()
    others: Mapping[str, Any] | None = None


def of_kinds(keys: Keys, kinds: Mapping[str, Callable[[str], bool]]) -> dict[str, Key]:
    """Keys that say in front of their meaning for which kinds they are, where that is not all of them."""
    users = {
        name: [kind for kind, takes in kinds.items() if takes(name)] for name in keys
    }
    return {
        name: replace(key, text=f"{', '.join(users[name])}: {key.text}")
        if 0 < len(users[name]) < len(kinds)
        else key
        for name, key in keys.items()
    }


_SINKS = {sink.kind: keys_of(sink).__contains__ for sink in SINKS}
_OF_SINKS = of_kinds({n: k for sink in SINKS for n, k in keys_of(sink).items()}, _SINKS)
_SOURCES = {kind: lambda name, kind=kind: takes_key(kind, name) for kind in KINDS}
_OF_ENDPOINT = of_kinds(
    keys_of(WebhookSink), {"http": lambda _: True, "file": lambda _: False}
)
_TIMEOUT = replace(_OF_ENDPOINT["timeout_s"], default=TIMEOUT_S)

TABLES = (
    Table(
        file="streams",
        name="streams.NAME",
        text="a stream",
        keys=keys_of(StreamSettings),
    ),
    Table(
        file="streams",
        name="streams.NAME.columns",
        text='names of columns. With header = false a column is named by its number: "1", "2", .. In ndjson VP.veh and'
        ' coordinates[0] are paths, and with records = ".." document.now is what the document says beside the list. An'
        ' attribute whose column has another name is a key here too: speed = "VP.spd"',
        keys=keys_of(Columns),
        others={"type": ["string", "integer"]},
    ),
    Table(
        file="streams",
        name="streams.NAME.position_filter",
        text="at least one limit; a fix beyond it is stored with the reason and changes nothing",
        keys=keys_of(PositionFilter),
    ),
    Table(
        file="streams",
        name="streams.NAME.spark",
        text="where the engine spark runs; it decides no answer, and counts from the next start on",
        keys=keys_of(SparkSettings),
    ),
    Table(
        file="streams",
        name="streams.NAME.sources.SOURCE",
        text="where live records come from; `fairway capture` runs all sources (docs/feeds.md)",
        keys=of_kinds(keys_of(SourceSettings), _SOURCES),
    ),
    Table(
        file="deliveries",
        name="deliveries.NAME",
        text="a delivery",
        keys={**DELIVERY_KEYS, **_OF_SINKS},
        of_kinds=_OF_SINKS,
    ),
    Table(
        file="operations",
        name="supervisor",
        text="when the supervisor loses patience; seconds, where nothing else is said",
        keys=keys_of(Limits),
    ),
    Table(
        file="operations",
        name="alerts",
        text="a webhook that gets each new line of HOME/alerts.jsonl by POST, as a JSON object: ts, stream, level,"
        " text",
        keys=keys_of(AlertSettings),
    ),
    Table(
        file="operations",
        name="notifier",
        text="one of Airflow's notifiers, told of each error that makes a run of the DAG stream_supervisor red; secrets"
        " belong in Airflow's connections",
        keys=keys_of(Notifier),
    ),
    Table(
        file="operations",
        name="lineage",
        text="which run of which job read and wrote which tables, as events of OpenLineage; without the table none"
        " are told",
        keys={**keys_of(LineageSettings), **_OF_ENDPOINT, "timeout_s": _TIMEOUT},
        of_kinds=_OF_ENDPOINT,
    ),
    Table(
        file="operations",
        name="retention",
        text="how many days of the wall clock files stay that belong to no table; `fairway maintain` deletes them",
        keys=keys_of(KeptDays),
    ),
    Table(
        file="operations",
        name="server",
        text="what the page of `fairway serve` shows below the layers, and what requests may take that it answers in"
        " processes of their own",
        keys=keys_of(ServerSettings),
    ),
    Table(file="layers", name="kinds.KIND", text="a rule", keys=keys_of(Rule)),
    Table(
        file="filters",
        name="filters.NAME",
        text="a filter of your own, which queries call NAME (docs/query-language.md#filters-of-your-own); only who may"
        " write this file says what is run",
        keys=keys_of(FilterSettings),
    ),
)
FILES = tuple(dict.fromkeys(table.file for table in TABLES))


def page() -> str:
    """The page of all settings."""
    lines = [HEAD]
    for file in FILES:
        lines += [f"## `{file}.toml`", ""]
        for table in TABLES:
            if table.file == file:
                lines += _part(table)
    return "\n".join(lines).rstrip() + "\n"


def _part(table: Table) -> Iterator[str]:
    text = table.text[0].upper() + table.text[1:]
    yield from (f"### `[{table.name}]`", "", f"{_linked(text)}.", "")
    yield from ("| key | takes | default | meaning |", "|---|---|---|---|")
    for key in table.keys.values():
        default = _default(key).replace("`", "")
        shown = MUST if key.is_required else f"`{default}`" if default else ""
        cells = (f"`{key.name}`", _takes(key), shown, _linked(key.text))
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    yield ""


def _takes(key: Key) -> str:
    if "enum" in key.type.schema:
        *others, last = (f"`{choice}`" for choice in key.type.schema["enum"])
        return " or ".join(filter(None, (", ".join(others), last)))
    return f"{key.type.takes} ({key.unit})" if key.unit else key.type.takes


def _default(key: Key) -> str:
    """What counts where a key is left out, as TOML writes it; "" where that is nothing."""
    if key.default is None:
        return f'"{OFF}"' if {"const": OFF} in key.type.schema.get("anyOf", ()) else ""
    if isinstance(key.default, float):
        return f"{key.default:g}"
    value = list(key.default) if isinstance(key.default, tuple) else key.default
    return json.dumps(value) if value != [] else ""


def _linked(text: str) -> str:
    """A text in which the names of pages are links."""
    return re.sub(r"docs/([\w-]+\.md)", r"[\1](\1)", text)


def commented(file: str, text: str) -> str:
    """A file of settings with the comment that is made, from its first section to its first empty line."""
    sections = "#\n".join(_section(table) for table in TABLES if table.file == file)
    begin = _SECTION.search(text)
    if begin is None:
        raise ValueError(f"{file}.toml has no comment such as # [streams.NAME]")
    _, empty, rest = text[begin.start() :].partition("\n\n")
    return text[: begin.start()] + sections + empty[1:] + rest


def _section(table: Table) -> str:
    width = max(map(len, table.keys)) + 2
    lines = _wrapped(f"[{table.name}]", table.text, width)
    for key in table.keys.values():
        default = "" if key.is_required else _default(key)
        more = f"(default {default})".replace(" ", _BLANK) if default else ""
        lines += _wrapped(key.name, f"{key.text} {more}", width)
    return "\n".join(lines) + "\n"


def _wrapped(name: str, text: str, width: int) -> list[str]:
    wrapped = textwrap.wrap(
        f"# {name:{width - 2}}  {text}",
        WIDTH,
        subsequent_indent=f"# {'':{width}}",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_BLANK, " ") for line in wrapped]


def schema(file: str) -> dict[str, Any]:
    """What JSON Schema can say of a file: keys and their values, and not what goes together."""
    top: dict[str, Any] = {"$schema": _DRAFT, "title": f"{file}.toml", **_object({})}
    for table in TABLES:
        if table.file == file:
            _put(top, table.name.split("."), _of_table(table))
    return top


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "additionalProperties": False,
    }


def _of_table(table: Table) -> dict[str, Any]:
    made = _object({key.name: _of_key(key) for key in table.keys.values()})
    must = [
        key.name
        for key in table.keys.values()
        if key.is_required and key.name not in table.of_kinds
    ]
    made |= {"description": table.text} | ({"required": must} if must else {})
    if table.others is not None:
        made["additionalProperties"] = table.others
    return made


def _of_key(key: Key) -> dict[str, Any]:
    default = {} if key.default in (None, ()) else {"default": key.default}
    return {**key.type.schema, "description": key.text, **default}


def _put(within: dict[str, Any], path: list[str], made: dict[str, Any]) -> None:
    """Puts the schema of a table where its name says; a name in capitals stands for any."""
    for name in path[:-1]:
        within = (
            within["additionalProperties"]
            if name.isupper()
            else within["properties"].setdefault(name, {"type": "object"})
        )
    if path[-1].isupper():
        within["additionalProperties"] = made
    else:
        within["properties"][path[-1]] = made


def _printed(value: Any, indent: str = "") -> str:
    """JSON with a line for each key of a table, and not one for each word."""
    if not isinstance(value, dict) or not any(
        isinstance(v, dict) for v in value.values()
    ):
        return json.dumps(value, ensure_ascii=False)
    inner = [
        f"{indent} {json.dumps(k)}: {_printed(v, indent + ' ')}"
        for k, v in value.items()
    ]
    return "{\n" + ",\n".join(inner) + f"\n{indent}}}"


def files() -> dict[Path, str]:
    """All files that are made, with their texts."""
    made = {PAGE: page()}
    for file in FILES:
        path = CONF / f"{file}.toml"
        made[path] = commented(file, path.read_text(encoding="utf-8"))
        made[CONF / "schema" / f"{file}.json"] = f"{_printed(schema(file))}\n"
    return made


def main() -> int:
    """Writes or compares them; gives back the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    is_check = parser.parse_args().check
    differing = [
        path
        for path, text in files().items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    for path in differing:
        if is_check:
            print(
                f"{path} is not what the code says: make generate ARGS=settings",
                file=sys.stderr,
            )
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(files()[path], encoding="utf-8")
    return int(is_check and bool(differing))


if __name__ == "__main__":
    sys.exit(main())
