"""Aggregates and distinct values above spatial answers and windows.

`SELECT zone, COUNT(*) .. GROUP BY zone`: a group is told when its value becomes another one, first `-` with the old
value, then `+` with the new one:

    tick    members (zone)        told
    1       a (n)                 + n 1
    2       a (n), b (n)          - n 1    + n 2
    3       a (s), b (n)          - n 2    + n 1    + s 1

Values are found anew from the members that a query has now, never by adding and subtracting: so minimum and maximum
are right after the extreme has left, and the same log gives the same bits.

Who is a member is not known here: see `matching`, `skeleton`, `window`. Begin with `relational`, then `reducing`.
"""
