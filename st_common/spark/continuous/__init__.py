"""Continuous spatial queries over any DataFrame, in a pipeline of one's own (docs/continuous.md).

A home and its logs are not needed: rows of a DataFrame go to shards by key, whose states are in Spark's state store.
Streams of a home run otherwise (`spark.resident`). Begin with `call`, then `processor`.
"""

from st_common.spark.continuous.call import continuous

__all__ = ["continuous"]
