"""Objects on a road network, and their fixes in the format of a stream: what there is to try before a feed is there.

    roads (a layer, a file, a grid) -> network -> traffic (rounds of fixes) -> simulate -> a stream's log, or a socket

The benches and the laws travel on it too. Begin with `simulate`, then `traffic`.
"""
