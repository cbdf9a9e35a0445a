"""Continuous queries as pure steps over arrays: state, packets of the log -> state, changes of answers.

Nothing here reads a file or a clock, or knows which engine runs it; what rows of the log are is `events`' affair, what
a run of them brings `turn`'s. A folder is an operator, or what several share; each knows none of its callers. Begin
with `runtime.stages.step`, then `runtime.evaluate`.
"""
