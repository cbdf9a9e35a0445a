"""Which queries a point satisfies: all regions that stand still, and features of layers, at once.

The table of queries is joined with the table of points (PLACE's shared execution): regions of one type are one index,
queries that look alike share a join with a layer and a condition. So the cost grows with the pairs that match, not
with queries times points.

    10,000 boxes  ->  one BoxIndex  ->  pairs (point, box)  ->  conditions of those pairs alone  ->  targets
"""
