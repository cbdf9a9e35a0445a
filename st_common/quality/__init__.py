"""Days of data held against their contracts: findings, reports, and a first contract proposed from data.

Rules are those of `contracts`, judged by Great Expectations, here or on Spark; measures of a stream's day are taken by
`measuring`. Records that cannot be read never come here: they are `rejects`. Begin with `daily`, then `check`.
"""
