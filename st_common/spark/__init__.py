"""The same on Spark: tasks that stay for streams, batch jobs on DataFrames and Delta, `continuous` for pipelines.

The only place that imports pyspark, delta and sedona; what a query means is `operators`' affair here too. Begin with
`session`, then `resident` (streams), `layers`, `batch_days`, `quality` (jobs), `continuous`.
"""
