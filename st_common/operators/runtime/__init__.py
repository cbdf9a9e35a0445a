"""The one step: in which order operators are asked, and what becomes of the state.

stages       packets in log order -> runs of fixes, and control rows
evaluate     one run: order of time, position filters, PHASES, delta
swap         queries that start, stop or see another version of a layer: SWAP_PHASES
ranges       regions that stand still, fix by fix; `gpac` has the four cases
ticks        all that is judged at ticks of event time
compiling    who judges which query
wanted       the next time at which something happens though no fix comes
retire       what nothing names any more is forgotten
reshape      the states of shards as one, and dealt out again
"""
