"""Pairs of objects of one stream (near each other, or with the same key), and regions that move joined with layers.

`FROM cars a, cars b WHERE ST_DWithin(a, b, 100 m)`: the pair (a, b) is a target of a, with b as the partner. Which
objects are first ones, and which partners, is asked of each object once; then circles around first ones are looked up
in one grid of all partners.

Who is a member of one region alone is `skeleton`'s affair. Begin with `specs`, then `pairing`.
"""
