"""Regions of queries (boxes, circles, polygons, corridors, still or with an object), each with all that is known of it.

Its text, JSON, words, index, borders and extent are asked through the registry (docs/adr/0033), so that a new kind is a
module and a line. Regions that tables are spread over are another thing: see `partitioning`. Begin with `region`, then
`registry`.
"""
