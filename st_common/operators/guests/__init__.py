"""Objects of other shards that a shard follows, for they come near queries that it judges: its guests (docs/adr/0100).

    shard 2 judges      SELECT * FROM buses INSIDE ('M', 'tram-7', 500 m)
    tram-7              an object of shard 0
    buses around it     objects of shards 0, 1, 3
    guests of shard 2   tram-7, and those buses, while they are near

Before a part of the log is stepped, a shard asks the others by name for the fixes of its guests, and by place for
objects that come near (`hosting`); those look through what they know (`answering`). All else is as if the shard
followed all objects: who is not a guest is in no region of its queries.

nearby      which queries look for others around an object, and how far
cells       where they look, as cells of a grid
part_fixes  the fixes of a part of the log
answering   what a shard says of its own objects
hosting     what a shard asks, and its state and fixes with all guests
dealing     which shard judges which query, so that guests are few
"""
