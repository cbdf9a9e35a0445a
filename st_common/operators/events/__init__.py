"""From rows of the log to events in the order in which they take effect, and to the ticks that are due.

With `lateness = 10 s` the clock (the watermark) stands 10 s behind the largest event time so far:

    row of the log          1     2     3     4     5
    its event time         10    22    15    11    40
    clock after the row     0    12    12    12    30
    takes effect at row     2     5     5   late     -      15 before 22; 40 is held until the clock has passed it

packet     one segment of the log, as a shard gets it
timeline   which fixes are late, double, held; who is gone, who has been silent for too long
agenda     the ticks of event time that the clock passes, each at a row of the log
"""
