"""One rule of a contract, and the Great Expectation that it is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from st_common.contracts.kinds import KINDS

RuleKind = Literal[
    "type", "not_null", "unique", "between", "length", "pattern", "valid_values", "sql"
]
Severity = Literal["error", "warning", "info"]

TABLE = "${table}"  # stands for the table in a contract's SQL
COUNT = "SELECT count(*) FROM "  # how a contract's SQL begins: it counts the rows that break the rule

_ROWS = "SELECT * FROM "

# GX's words for how much a failure weighs.
GX_SEVERITY = {"error": "critical", "warning": "warning", "info": "info"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One promise about rows. A null value breaks `not_null` only.

        Rule(name="x_between", kind="between", columns=("x",), arguments={"minimum": -180})
        -> expect_column_values_to_be_between, {"column": "x", "min_value": -180}

    Attributes:
        name: unique in its contract.
        kind: what is promised.
        columns: about which columns; several only for `unique` and `sql`.
        arguments: of the kind, by name: bounds, a pattern, values, a query.
        severity: how much a failure weighs.
        description: what is promised, for people; "": it is made of the kind and its arguments.
    """

    name: str
    kind: RuleKind
    columns: tuple[str, ...]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    severity: Severity = "error"
    description: str = ""

    def expectation(self, contract: str) -> dict[str, Any]:
        """The rule as a Great Expectation on Spark: type, kwargs, severity, meta.

        Args:
            contract: the contract's name, for `meta`.
        """
        kind, kwargs = _EXPECTATIONS[self.kind](self)
        return {
            "type": kind,
            "kwargs": kwargs,
            "severity": GX_SEVERITY[self.severity],
            "meta": {
                "rule": self.name,
                "contract": contract,
                "severity": self.severity,
                "expected": self.expected,
            },
        }

    @property
    def expected(self) -> str:
        """What the rule demands, for people."""
        return self.description or _EXPECTED[self.kind](self)


def _comparisons(rule: Rule, column: str) -> list[str]:
    signs = {
        "minimum": ">=",
        "exclusiveMinimum": ">",
        "maximum": "<=",
        "exclusiveMaximum": "<",
    }
    signs |= {"minLength": ">=", "maxLength": "<="}
    return [
        f"{column} {sign} {rule.arguments[key]}"
        for key, sign in signs.items()
        if key in rule.arguments
    ]


def _gx_between(rule: Rule) -> tuple[str, dict[str, Any]]:
    given = rule.arguments
    kwargs: dict[str, Any] = {"column": rule.columns[0]}
    for side, plain, strict in (
        ("min", "minimum", "exclusiveMinimum"),
        ("max", "maximum", "exclusiveMaximum"),
    ):
        if strict in given:
            kwargs |= {f"{side}_value": given[strict], f"strict_{side}": True}
        elif plain in given:
            kwargs[f"{side}_value"] = given[plain]
    return "expect_column_values_to_be_between", kwargs


def _gx_length(rule: Rule) -> tuple[str, dict[str, Any]]:
    names = {"minLength": "min_value", "maxLength": "max_value"}
    bounds = {names[key]: value for key, value in rule.arguments.items()}
    return "expect_column_value_lengths_to_be_between", {
        "column": rule.columns[0],
        **bounds,
    }


def _gx_unique(rule: Rule) -> tuple[str, dict[str, Any]]:
    if len(rule.columns) == 1:
        return "expect_column_values_to_be_unique", {"column": rule.columns[0]}
    return "expect_compound_columns_to_be_unique", {"column_list": list(rule.columns)}


def _gx_rows(rule: Rule) -> tuple[str, dict[str, Any]]:
    rows = _ROWS + str(rule.arguments["query"]).removeprefix(COUNT)
    return "unexpected_rows_expectation", {
        "unexpected_rows_query": rows.replace(TABLE, "{batch}")
    }


def _gx_column(
    kind: str, **renamed: str
) -> Callable[[Rule], tuple[str, dict[str, Any]]]:
    def made(rule: Rule) -> tuple[str, dict[str, Any]]:
        given = {gx: rule.arguments[ours] for gx, ours in renamed.items()}
        return kind, {"column": rule.columns[0]} | {
            gx: list(value) if isinstance(value, tuple) else value
            for gx, value in given.items()
        }

    return made


def _gx_type(rule: Rule) -> tuple[str, dict[str, Any]]:
    wanted = KINDS[rule.arguments["type"]].spark
    return "expect_column_values_to_be_of_type", {
        "column": rule.columns[0],
        "type_": wanted,
    }


_EXPECTATIONS: dict[RuleKind, Callable[[Rule], tuple[str, dict[str, Any]]]] = {
    "type": _gx_type,
    "not_null": _gx_column("expect_column_values_to_not_be_null"),
    "unique": _gx_unique,
    "between": _gx_between,
    "length": _gx_length,
    "pattern": _gx_column("expect_column_values_to_match_regex", regex="pattern"),
    "valid_values": _gx_column("expect_column_values_to_be_in_set", value_set="values"),
    "sql": _gx_rows,
}

_EXPECTED: dict[RuleKind, Callable[[Rule], str]] = {
    "type": lambda rule: f"{rule.columns[0]} is {rule.arguments['type']}",
    "not_null": lambda rule: f"{rule.columns[0]} is never null",
    "unique": lambda rule: f"({', '.join(rule.columns)}) is unique",
    "between": lambda rule: " and ".join(_comparisons(rule, rule.columns[0])),
    "length": lambda rule: " and ".join(
        _comparisons(rule, f"length({rule.columns[0]})")
    ),
    "pattern": lambda rule: f"{rule.columns[0]} matches {rule.arguments['pattern']}",
    "valid_values": lambda rule: (
        f"{rule.columns[0]} is one of {', '.join(map(str, rule.arguments['values']))}"
    ),
    "sql": lambda rule: str(rule.arguments["query"]),
}
