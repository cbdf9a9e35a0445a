"""Objects on a road network, and their fixes in the format of a stream: what there is to try before a feed is there."""
