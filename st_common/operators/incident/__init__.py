"""Incidents (`FOR`, `UNTIL`): conditions that hold for some time, from a beginning to an end, with a worst value.

They run on the machine of fences (`fence.machine`); what a condition is, is `expressions`' affair. Begin with `specs`,
then `judging`.
"""
