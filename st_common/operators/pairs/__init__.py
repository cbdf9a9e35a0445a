"""Pairs of objects of one stream, and regions that move joined with layers."""
