"""Continuous spatial queries over any DataFrame, in a pipeline of one's own (docs/continuous.md)."""

from st_common.spark.continuous.call import continuous

__all__ = ["continuous"]
