"""The global index: regions of space from a KD-tree."""
