"""Fairway: continuous spatial queries over streams of moving objects. The public interface for programs in Python.

Everything that programs may rely on is named here; `st_common` is its implementation, and may change at any time.

    import fairway

    port = "SELECT * FROM ships INSIDE (24.945, 60.160, 24.965, 60.168)"
    fairway.evaluate("sample:ships", port).changes.to_pandas()  # a file or a frame, and a query

    with fairway.connect("tracks") as client:  # streams that run
        for change in client.register("SELECT * FROM taxis INSIDE (-8.63, 41.14, -8.60, 41.16)"):
            print(change.sign, change.element.object)
"""

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from st_common.batch.backtest import Backtest
from st_common.client.changes import Change
from st_common.client.evaluation import Evaluation, evaluate
from st_common.client.home_client import HomeClient
from st_common.client.interface import ChangeFeed, Client, QueryId, Subscription
from st_common.client.put import Put
from st_common.client.result import Result
from st_common.client.tuples import MultiTuple
from st_common.errors import (
    ConfigError,
    FairwayError,
    QueryError,
    StorageError,
    TransientError,
)
from st_common.extras import require_module
from st_common.query.builder import query
from st_common.query.tuples import Element, Feature

if TYPE_CHECKING:
    from st_common.spark.continuous import continuous
    from st_common.spark.log_source import register_log_source

__all__ = [
    "Backtest",
    "Change",
    "ChangeFeed",
    "Client",
    "ConfigError",
    "Element",
    "Evaluation",
    "FairwayError",
    "Feature",
    "MultiTuple",
    "Put",
    "QueryError",
    "QueryId",
    "Result",
    "StorageError",
    "Subscription",
    "TransientError",
    "connect",
    "continuous",
    "evaluate",
    "query",
    "register_log_source",
]

_OF_SPARK = {
    "continuous": "st_common.spark.continuous",
    "register_log_source": "st_common.spark.log_source",
}
_URL = re.compile(r"https?://", re.IGNORECASE)


def connect(where: Path | str | None = None, *, token: str | None = None) -> Client:
    """A client on a home folder, or of a server (`fairway serve`).

    Args:
        where: the home folder, or the address of a server; None: the home that FAIRWAY_HOME names. Streams of a home
            are those of FAIRWAY_CONF, else of `conf` in the home, else of `./conf`.
        token: what a server asks for; None: nothing.

    Raises:
        ConfigError: there are no settings; or a token for a home.
    """
    if where is not None and _URL.match(str(where)):
        from st_common.client.http_client import HttpClient

        return HttpClient(str(where), token=token)
    if token is not None:
        raise ConfigError("a home asks for no token", hint="give a server's address")
    return HomeClient(where)


def __getattr__(name: str) -> object:
    """What needs PySpark, when somebody asks for it: it takes long to import, and may not be installed."""
    if name not in _OF_SPARK:
        raise AttributeError(f"module 'fairway' has no attribute {name!r}")
    require_module("pyspark")
    return getattr(import_module(_OF_SPARK[name]), name)
