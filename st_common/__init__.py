"""Fairway: continuous spatial queries over streams of moving objects."""
