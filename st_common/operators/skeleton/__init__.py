"""The skeleton of GPAC for queries that move: a kind of query is four methods.

    satisfy           who of these objects is a member
    update_criteria   where the query is now (its focal object has moved, its k-th neighbour is another one)
    in_cache_area     who is in the region, grown by a margin
    is_dynamic        whether members decide the criteria, as the k-th neighbour does

Q.Cache: with a margin, the objects of a wider area are remembered, and the query needs no look at others until it has
gone farther than the margin from where the cache was filled:

    +-----------------------+
    |  cache area           |          margin = share x largest speed x time after which an object is silent
    |     +---------+       |
    |     |  query  |  o    |          o is in the cache, no member; it becomes one when the query moves towards it
    |     +---------+       |
    +-----------------------+
"""
