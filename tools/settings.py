"""Writes docs/settings.md: each key of the settings with what it takes, its default and its meaning.

Keys, what they take and defaults come from the code, meanings from conf/.
The comment at the head of each file of conf/ has a section for each table, and a line for each key:

    # [streams.NAME.spark]    where the engine spark runs
    # cores             how many tasks run at once (default 2)

A key that the comment does not have, or of which it says another default than the code, is an error. `--check` compares
the page instead of writing it.
"""

import dataclasses
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from written_page import write_or_check

from st_common.delivery.alerting import ALERT_KEYS, AlertSettings
from st_common.delivery.registry import SINKS
from st_common.delivery.settings import DELIVERY_KEYS, DeliverySettings
from st_common.delivery.webhook import WebhookSink
from st_common.errors import ConfigError
from st_common.feed_keys import SOURCE_KEYS, SourceSettings
from st_common.layers.kinds import RULE_KEYS, Rule
from st_common.lifecycle.leftovers import DAYS_KEYS, KeptDays
from st_common.lineage.settings import LINEAGE_KEYS, TIMEOUT_S, LineageSettings
from st_common.ops.health import Limits
from st_common.ops.settings import LIMIT_KEYS, NOTIFIER_KEYS
from st_common.position_filter import PositionFilter
from st_common.server.settings import SERVER_KEYS, ServerSettings
from st_common.settings import Columns, StreamSettings
from st_common.spark_keys import SPARK_KEYS, SparkSettings
from st_common.stream_keys import COLUMN_KEYS, FILTER_KEYS, STREAM_KEYS
from st_common.toml_values import Check, taken_by

PAGE = Path("docs/settings.md")
MUST = "must be given"
HEAD = """# All settings

What people set lies in one folder, `conf` of the home or where `--conf` says; `fairway init` begins one.
A key that is unknown, missing or wrong is an error that names file, table and key. The page is written by
`make settings-docs`: keys, what they take and defaults come from the code, meanings from the comments of these files.

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
_SECTION = re.compile(r"# \[([a-zA-Z_.]+)\] +(\S.*)")
_KEY = re.compile(r"# ([a-z_]+) {2,}(\S.*)")
_MORE = re.compile(r"# {3,}(\S.*)")
_DEFAULT = re.compile(r" \(default (\"[^\"]*\"|\[[^]]*\]|[^);:]+)([;:] [^)]*)?\)")
_SINK_KEYS = {key: check for sink in SINKS for key, check in sink.keys.items()}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table of a file.

    Attributes:
        file: without `.toml`.
        name: as the file's comment has it.
        keys: what each key may be.
        kinds: the dataclasses whose fields have the defaults; of two that have a field the first one counts.
        must: keys that must be there, though no field says so.
        defaults: what the code sets in place of a field's default.
    """

    file: str
    name: str
    keys: Mapping[str, Check]
    kinds: tuple[type, ...] = ()
    must: frozenset[str] = frozenset()
    defaults: Mapping[str, object] = dataclasses.field(default_factory=dict)


TABLES = (
    Table(
        file="streams",
        name="streams.NAME",
        keys=STREAM_KEYS,
        kinds=(StreamSettings,),
    ),
    Table(
        file="streams",
        name="streams.NAME.columns",
        keys=COLUMN_KEYS,
        kinds=(Columns,),
    ),
    Table(
        file="streams",
        name="streams.NAME.position_filter",
        keys=FILTER_KEYS,
        kinds=(PositionFilter,),
    ),
    Table(
        file="streams",
        name="streams.NAME.spark",
        keys=SPARK_KEYS,
        kinds=(SparkSettings,),
    ),
    Table(
        file="streams",
        name="streams.NAME.sources.SOURCE",
        keys=SOURCE_KEYS,
        kinds=(SourceSettings,),
    ),
    Table(
        file="deliveries",
        name="deliveries.NAME",
        keys=DELIVERY_KEYS | _SINK_KEYS,
        kinds=(DeliverySettings, *SINKS),
        must=frozenset({"to"}),
    ),
    Table(file="operations", name="supervisor", keys=LIMIT_KEYS, kinds=(Limits,)),
    Table(
        file="operations",
        name="alerts",
        keys={**WebhookSink.keys, **ALERT_KEYS},
        kinds=(AlertSettings, WebhookSink),
    ),
    Table(
        file="operations",
        name="notifier",
        keys=NOTIFIER_KEYS,
        must=frozenset({"class"}),
    ),
    Table(
        file="operations",
        name="lineage",
        keys={**LINEAGE_KEYS, **WebhookSink.keys},
        kinds=(LineageSettings, WebhookSink),
        defaults={"timeout_s": TIMEOUT_S},
    ),
    Table(file="operations", name="retention", keys=DAYS_KEYS, kinds=(KeptDays,)),
    Table(
        file="operations",
        name="server",
        keys=SERVER_KEYS,
        kinds=(ServerSettings,),
    ),
    Table(file="layers", name="kinds.KIND", keys=RULE_KEYS, kinds=(Rule,)),
)


def page(conf: Path = Path("conf")) -> str:
    """The page as it should be.

    Args:
        conf: the folder with the files whose comments say what keys mean.

    Raises:
        ConfigError: a comment leaves a key out, has one that nobody knows, or another default than the code.
    """
    lines = [HEAD]
    for file in dict.fromkeys(table.file for table in TABLES):
        meanings = meanings_of(conf / f"{file}.toml")
        lines += [f"## `{file}.toml`", ""]
        for table in TABLES:
            if table.file == file:
                lines += _part(table, meanings)
    return "\n".join(lines).rstrip() + "\n"


def meanings_of(path: Path) -> dict[str, dict[str, str]]:
    """What the comment of a file says: for each table what each key means, and under "" what the table is."""
    meanings: dict[str, dict[str, str]] = {}
    table, key = "", ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if section := _SECTION.fullmatch(line):
            table, key = section[1], ""
            meanings[table] = {"": section[2]}
        elif table and (entry := _KEY.fullmatch(line)):
            key = entry[1]
            meanings[table][key] = entry[2]
        elif table and (more := _MORE.fullmatch(line)):
            meanings[table][key] += f" {more[1]}"
        else:
            table = ""
    return meanings


def _part(table: Table, meanings: dict[str, dict[str, str]]) -> Iterator[str]:
    said = meanings[table.name]
    if unequal := (said.keys() - {""}) ^ table.keys.keys():
        raise ConfigError(
            f"conf/{table.file}.toml: [{table.name}]: {', '.join(sorted(unequal))}",
            hint="the comment and the code have different keys",
        )
    yield from (f"### `[{table.name}]`", "", f"{_linked(_sentence(said['']))}.", "")
    yield from ("| key | takes | default | meaning |", "|---|---|---|---|")
    for key, check in table.keys.items():
        default = _default(table, key)
        meaning = _without_default(table, key, said[key], default)
        cells = (f"`{key}`", taken_by(check), default, _linked(meaning))
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    yield ""


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:].rstrip(".")


def _default(table: Table, key: str) -> str:
    """What counts where a key is left out, as TOML writes it; "" where that is nothing."""
    if key in table.must:
        return MUST
    if key in table.defaults:
        return _as_toml(table.defaults[key])
    fields = {
        field.name: field
        for kind in reversed(table.kinds)
        for field in dataclasses.fields(kind)
    }
    if key not in fields or fields[key].default_factory is not dataclasses.MISSING:
        return ""
    value = fields[key].default
    if value is None:
        return "`off`" if "`off`" in taken_by(table.keys[key]) else ""
    return MUST if value is dataclasses.MISSING else _as_toml(value)


def _as_toml(value: object) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, float | int):
        return f"`{value:g}`"
    if isinstance(value, tuple):
        words = ", ".join(f'"{word}"' for word in value)
        return f"`[{words}]`" if words else ""
    return f"`{value}`"


def _without_default(table: Table, key: str, meaning: str, default: str) -> str:
    """A meaning without what it says of the default, which has a column of its own.

    Raises:
        ConfigError: it says another one.
    """
    said = _DEFAULT.search(meaning)
    if said is None:
        return meaning
    if said[1].strip('"') != default.strip("`"):
        raise ConfigError(
            f"conf/{table.file}.toml: [{table.name}] {key}: default {said[1]}, in the code {default or 'none'}"
        )
    more = f" ({said[2].lstrip(';: ')})" if said[2] else ""
    return meaning[: said.start()] + more + meaning[said.end() :]


def _linked(text: str) -> str:
    """A text in which the names of pages are links."""
    return re.sub(r"docs/([\w-]+\.md)", r"[\1](\1)", text)


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page(), target="settings-docs", about=__doc__))
