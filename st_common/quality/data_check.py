"""What a stream's own contract says of the data of a day, and whether the data keep it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from typing import Any

import pyarrow as pa

from st_common import tables
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.contracts import DataRule, StreamContract, load_stream_contract
from st_common.contracts.kinds import ATTRIBUTE_KINDS
from st_common.errors import ContractError, FairwayError, LogError
from st_common.quality.day_data import NO_FIXES, columns_of, gather
from st_common.quality.engines import LOCAL, Engine
from st_common.quality.finding import (
    AS_PROMISED,
    CAN_BE_CHECKED,
    Finding,
    data_label,
)
from st_common.quality.measuring import Observed
from st_common.quality.measuring_columns import observe
from st_common.quality.suite import judge
from st_common.quality.tally import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class DataCheck:
    """What a stream's contract found in a day's data.

    Attributes:
        contract: the contract's name and version; "" when the stream has none.
        findings: whether the attributes are as promised, then one for each rule.
        result: the validation result of Great Expectations, as JSON values; empty when there was nothing to judge.
        page: the same as a page of its Data Docs; "" when there was nothing to judge.
    """

    contract: str = ""
    findings: tuple[Finding, ...] = ()
    result: Mapping[str, Any] = field(default_factory=dict)
    page: str = ""


_OF_RECORDS = {"rejects_share"}  # what is judged also where no fix is promised
NO_DATA_CHECK = DataCheck()
"""Of a stream that has no contract."""


def check_data(
    home: Home,
    stream: StreamSettings,
    day: date,
    tally: Tally,
    engine: Engine = LOCAL,
) -> DataCheck:
    """Judges the data of a day by the stream's contract; nothing is written.

    Args:
        home: where the tables, the log and perhaps the contract lie.
        stream: the settings of the stream.
        day: the day (UTC); it may have no data at all.
        tally: what happened to its records.
        engine: reads the day's fixes and takes the measures.

    Returns:
        No findings where the stream has no contract; one broken rule where the contract or the log cannot be read.
    """
    try:
        contract = load_stream_contract(stream.name, home.root)
        if contract is None:
            return NO_DATA_CHECK
        observed = _measured(home, stream, contract, day, tally, engine)
    except (ContractError, LogError) as error:
        return DataCheck(findings=(_unreadable(stream.name, error),))
    judged = judge(contract, observed)
    findings = [
        _finding(rule, observed[rule.name], judged.kept, stream.name, day, tally.fixes)
        for rule in contract.rules
    ]
    return DataCheck(
        contract=f"{contract.name} {contract.version}",
        findings=(_attributes(stream, contract), *findings),
        result=judged.result,
        page=judged.page,
    )


def _measured(
    home: Home,
    stream: StreamSettings,
    contract: StreamContract,
    day: date,
    tally: Tally,
    engine: Engine,
) -> dict[str, Observed]:
    """What each rule measures, by its name: where the engine has all fixes of the day together."""
    path = home.table("positions", stream.name)
    measure = partial(_observed, home, stream, contract, day, tally)
    if not tables.exists(path):
        return measure(NO_FIXES)
    (observed,) = engine.each_part(
        path,
        columns_of(path, filter(None, (rule.column for rule in contract.rules))),
        [("event_date", "=", day)],
        measure,
        label=data_label(stream.name),
        whole=True,
    )
    return observed


def _observed(
    home: Home,
    stream: StreamSettings,
    contract: StreamContract,
    day: date,
    tally: Tally,
    fixes: pa.Table,
) -> dict[str, Observed]:
    data = gather(home, stream, day, tally, fixes)
    if not len(fixes) and contract.weekdays and not contract.is_promised(day):
        nothing = Observed(why=f"nothing is promised of {day:%A}s, and nothing came")
        return {
            rule.name: observe(data, rule) if rule.measure in _OF_RECORDS else nothing
            for rule in contract.rules
        }
    return {rule.name: observe(data, rule) for rule in contract.rules}


def _unreadable(stream: str, error: FairwayError) -> Finding:
    return Finding(
        table=data_label(stream),
        rule=CAN_BE_CHECKED,
        severity="error",
        passed=False,
        observed=None,
        expected="the stream's contract and its log can be read",
        rows=0,
        details=str(error),
        sentence=f"no rule on its data could be tried: {error}",
    )


def _finding(
    rule: DataRule,
    observed: Observed,
    kept: Mapping[str, bool],
    stream: str,
    day: date,
    rows: int,
) -> Finding:
    against = f", against {observed.against}" if observed.against else ""
    passed = kept.get(rule.name, not observed.has_failed)
    examples = "" if passed else json.dumps(observed.examples, default=str)
    some = [each for each in observed.examples if isinstance(each, str)]
    told = rule.breach(day, observed.value, observed.usual, some)
    return Finding(
        table=data_label(stream),
        rule=rule.name,
        severity=rule.severity,
        passed=passed,
        observed=observed.value,
        expected=f"{rule.expected}{against}",
        rows=rows,
        details=observed.why or examples,
        sentence="" if passed else told,
    )


def _attributes(stream: StreamSettings, contract: StreamContract) -> Finding:
    """Whether the stream declares the attributes that its contract speaks of, with the same types and units."""
    declared = {
        name: (ATTRIBUTE_KINDS[kind], stream.units.get(name, ""))
        for name, kind in stream.attributes.items()
    }
    promised = {each.name: (each.type, each.unit) for each in contract.attributes}
    differences = [
        f"{name} is {_said(declared.get(name))} and not {_said(wanted)}"
        for name, wanted in promised.items()
        if declared.get(name) != wanted
    ]
    return Finding(
        table=data_label(stream.name),
        rule=AS_PROMISED,
        severity="error",
        passed=not differences,
        observed=float(len(differences)),
        expected="attributes have the types and units that the contract says",
        rows=0,
        details="; ".join(differences),
        sentence=f"settings and contract differ: {'; '.join(differences)}"
        if differences
        else "",
    )


def _said(declared: tuple[str, str] | None) -> str:
    return "not declared" if declared is None else " ".join(declared).strip()
