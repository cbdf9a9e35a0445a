"""The spatial answers at several ticks of a run at once, as far as that is less work than tick by tick.

A backlog of an hour has 3,600 ticks of a second, and few objects change at each. So for the kinds that allow it, all
versions of last fixes are held against all queries together; what comes and goes at which tick follows from that:

    versions of a car's fix     ticks 0-4      5-9      10-19
    in the box                     yes          no        yes
    turns                         + at 0     - at 5    + at 10
"""
