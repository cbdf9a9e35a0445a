"""Fences (`DETECT`): who enters, exits, crosses and dwells, with hysteresis, each object a machine of two states.

    out   -- so many fixes in a row inside -->   in: ENTER, and DWELL after a while
    in    -- so many in a row farther out than the hysteresis -->   out: EXIT

Regions that stand still are judged fix by fix (`judging`), those that move at ticks (`ticking`). Where a region lies is
not known here: see `matching` and `skeleton`. Begin with `machine`, then `phases`.
"""
