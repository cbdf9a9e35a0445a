"""Streams as desired state: supervisor, lease, launcher, health."""
