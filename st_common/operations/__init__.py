"""Streams as desired state: the supervisor, its looks and decisions, leases, processes, health, alerts.

What `conf/streams.toml` wants is compared with what runs; processes outlive whoever started them. How an engine works
is `engine`'s affair. Begin with `supervisor`, then `decide`, then `health`.
"""
