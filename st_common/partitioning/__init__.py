"""Regions of space with like load: samples, splits, thresholds, and the table that tells all where they are.

Sedona's trees over data on Spark are in `spark/points`; what stands here needs no JVM. Begin with `splitting`, then
`store`.
"""
