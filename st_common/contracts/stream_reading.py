"""From the file of a stream's contract to a `StreamContract`.

An error names file, line and rule, as for the contracts of tables (`validation`).
"""

from pathlib import Path
from typing import Any, get_args

from st_common.config.environment import contracts_dir
from st_common.config.home import checked_name
from st_common.contracts.document import Document, Place, near, read_document
from st_common.contracts.kinds import ATTRIBUTE_KINDS, KINDS
from st_common.contracts.places import TABLE_AT, properties_of
from st_common.contracts.rules import Severity
from st_common.contracts.stream_model import Attribute, DataRule, StreamContract
from st_common.contracts.stream_rules import column_rules, stream_rules
from st_common.contracts.validation import check_standard

_SUFFIX = ".odcs.yaml"
_AXES = ("x", "y")
_LEVELS: dict[str, tuple[str, ...]] = {  # what must be there
    "table": ("name",),
    "property": ("name", "logicalType", "physicalType"),
    "quality": ("name", "severity"),
}
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
FREQUENCY = DataRule(
    name="frequency",
    measure="fixes",
    minimum=1.0,
    description="data on each day that is promised",
)
"""What the promise of data on each day is as a rule."""
_TYPES = sorted(set(ATTRIBUTE_KINDS.values()))


def stream_contract_paths(stream: str, home_root: Path | None) -> list[Path]:
    """Where the contract of a stream may lie: in the home, then beside the contracts of the tables.

    Args:
        stream: its name.
        home_root: the home folder; None: only the other place counts.
    """
    file = Path("streams") / f"{checked_name(stream, 'stream')}{_SUFFIX}"
    homes = [home_root / "data_contracts"] if home_root is not None else []
    return [folder / file for folder in (*homes, contracts_dir())]


def load_stream_contract(
    stream: str, home_root: Path | None = None
) -> StreamContract | None:
    """The contract of a stream, that of the home before the one that comes with the code; None when it has none.

    Args:
        stream: its name.
        home_root: the home folder.

    Raises:
        ContractError: it breaks ODCS 3.1 or a rule of ours; the message names file, line and rule.
    """
    for path in stream_contract_paths(stream, home_root):
        if path.is_file():
            return read_stream_contract(path, stream)
    return None


def read_stream_contract(path: Path, stream: str) -> StreamContract:
    """The contract in a file.

    Args:
        path: the file.
        stream: the name that it must have.

    Raises:
        ContractError: it cannot be read, or breaks ODCS 3.1 or a rule of ours.
    """
    document = read_document(path)
    check_standard(document, stream, _LEVELS)
    value = document.value
    properties = properties_of(document)
    weekdays = _weekdays(document)
    rules = [FREQUENCY] if weekdays else []
    rules += [rule for at in properties for rule in column_rules(document, *at)]
    rules += stream_rules(document)
    _check_names(document, rules)
    return StreamContract(
        name=value["name"],
        version=value["version"],
        weekdays=weekdays,
        attributes=tuple(
            _attribute(document, place, column)
            for place, column in properties
            if column["name"] not in _AXES
        ),
        rules=tuple(rules),
    )


def _attribute(document: Document, place: Place, column: dict[str, Any]) -> Attribute:
    kind = column["physicalType"]
    if kind not in _TYPES:
        raise document.error(
            (*place, "physicalType"),
            "unknown-type",
            f"{kind!r} is no type of an attribute",
            hint=near(kind, _TYPES),
        )
    if column["logicalType"] != KINDS[kind].logical:
        raise document.error(
            (*place, "logicalType"),
            "type-mismatch",
            f"{column['logicalType']!r} is not what {kind} is: {KINDS[kind].logical}",
        )
    return Attribute(name=column["name"], type=kind, unit=_unit(document, place))


def _unit(document: Document, place: Place) -> str:
    unit = ""
    for inner in document.items((*place, "customProperties")):
        custom = document.mapping(inner)
        if custom.get("property") != "unit":
            raise document.error(
                inner,
                "unknown-key",
                f"{custom.get('property')!r} is no custom property of an attribute",
                hint="known: unit",
            )
        unit = str(custom.get("value", ""))
    return unit


def _weekdays(document: Document) -> frozenset[int]:
    """The weekdays on which the contract promises data: `frequency` of 1 d, the only promise of service there is."""
    promised: frozenset[int] = frozenset()
    for place in document.items(("slaProperties",)):
        sla = document.mapping(place)
        told = (sla.get("property"), sla.get("value"), sla.get("unit"))
        if told != ("frequency", 1, "d"):
            raise document.error(
                place,
                "unknown-promise",
                f"property {told[0]!r}, value {told[1]!r}, unit {told[2]!r} is not known",
                hint="known: {property: frequency, value: 1, unit: d}, data on each day",
            )
        promised = _scheduled(document, place, sla)
    return promised


def _scheduled(document: Document, place: Place, sla: dict[str, Any]) -> frozenset[int]:
    """The weekdays that a promise of data names; all of them without a schedule."""
    scheduler, schedule = sla.get("scheduler"), sla.get("schedule")
    if scheduler is None and schedule is None:
        return frozenset(range(len(WEEKDAYS)))
    names = str(schedule or "").split()
    if scheduler != "weekdays" or not names or set(names) - set(WEEKDAYS):
        raise document.error(
            place,
            "unknown-promise",
            f"scheduler {scheduler!r}, schedule {schedule!r} is not known",
            hint=f"known: {{scheduler: weekdays, schedule: {' '.join(WEEKDAYS)}}}, or some of these days",
        )
    return frozenset(map(WEEKDAYS.index, names))


def _check_names(document: Document, rules: list[DataRule]) -> None:
    names = [rule.name for rule in rules]
    for rule in rules:
        if names.count(rule.name) > 1:
            raise document.error(
                TABLE_AT, "bad-rule", f"rule {rule.name!r} is there twice"
            )
        if rule.severity not in get_args(Severity):
            raise document.error(
                TABLE_AT,
                "bad-rule",
                f"rule {rule.name!r}: severity {rule.severity!r}",
                hint=f"known: {', '.join(get_args(Severity))}",
            )
