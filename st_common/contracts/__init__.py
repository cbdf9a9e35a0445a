"""Data contracts: `data_contracts/NAME.odcs.yaml` is the only place that says what a table looks like.

Arrow schemas, Spark and Delta DDL and the rules of data quality are all derived from these files.

Tables are written by `tables` and held against the rules by `quality`. Begin with `reading`, then `model`.
"""

from st_common.contracts.matching import matches, require_match
from st_common.contracts.model import Column, Contract
from st_common.contracts.reading import contract_names, load_contract
from st_common.contracts.rules import Rule
from st_common.contracts.stream_model import Attribute, DataRule, StreamContract
from st_common.contracts.stream_reading import (
    load_stream_contract,
    read_stream_contract,
)

__all__ = [
    "Attribute",
    "Column",
    "Contract",
    "DataRule",
    "Rule",
    "StreamContract",
    "contract_names",
    "load_contract",
    "load_stream_contract",
    "matches",
    "read_stream_contract",
    "require_match",
]
