"""Kernels over arrays of coordinates: boxes, grids, joins, distances, nearest neighbours, on a plane and on the globe.

Arrays in, arrays out: nothing here knows queries, regions, layers or streams. A point on a border counts as inside.
Begin with `space` (the plane and the globe), then `grid` and `join`.
"""
