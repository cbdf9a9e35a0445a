"""The batch arm: closed days once more, by the same step, over fixes in the order of their event times (docs/adr/0043).

    log order        a 10:00   b 10:02   a 10:01 (late)   register q   b 10:05
    batch order      a 10:00   a 10:01   b 10:02          register q   b 10:05

`engine.statements` places control rows in time, `ordered` makes packets, `borders` keeps states where days meet,
`reprocess` brings them together. What else runs over all that is stored is here too: a group's regions found again
(`prepartition`, `rebalance`), a stream begun anew (`reset`). Spark's tasks are `spark`'s affair.
"""
