"""Which queries a point satisfies: all regions that stand still, and layers, at once."""
