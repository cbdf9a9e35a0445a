"""Data contracts: `data_contracts/NAME.odcs.yaml` is the only place that says what a table looks like.

Arrow schemas, Spark and Delta DDL and the rules of data quality are all derived from these files.
"""

from st_common.contracts.matching import matches, require_match
from st_common.contracts.model import Column, Contract
from st_common.contracts.reading import contract_names, load_contract
from st_common.contracts.rules import Check, Rule

__all__ = [
    "Check",
    "Column",
    "Contract",
    "Rule",
    "contract_names",
    "load_contract",
    "matches",
    "require_match",
]
