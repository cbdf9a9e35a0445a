"""Stored sets of features: reading OSM and GeoJSON, kinds, matching."""
