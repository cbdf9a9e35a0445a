"""Registering queries from Python, and following their answers."""

from st_common.client.client import Client
from st_common.client.registration import QueryId, Registration
from st_common.client.tuples import Element, Feature, MultiTuple

__all__ = ["Client", "Element", "Feature", "MultiTuple", "QueryId", "Registration"]
