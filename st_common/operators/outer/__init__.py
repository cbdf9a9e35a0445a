"""Queries about the rows of other queries: `SELECT .. FROM (SELECT ..) r WHERE .. GROUP BY ..`.

What the other operators tell of the query in parentheses is not told on: it comes here, as rows with signs.

    told of the query below            its rows           COUNT(*) of r WHERE value > 1
    tick 1   + bus 1   + tram 2        bus 1, tram 2      + 1
    tick 2   - bus 1   + bus 2         bus 2, tram 2      - 1   + 2
    tick 3   - tram 2                  bus 2              - 2   + 1

An *instant* is a row of the log and an event time. What is told below of one instant counts together, in the order in
which changes are settled: a row that leaves and comes back, or comes with other values, is one that was corrected.
So what is told here does not depend on batches, nor on how many changes led from one answer to the next.

Which rows there are is the affair of the operators below. Begin with `specs`, then `phases`.
"""
