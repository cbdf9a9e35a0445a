"""Fairway: continuous spatial queries over streams of moving objects. All but its programs, DAGs, demo and tests.

    sources, replay -> log -> decode -> engine or spark (operators) -> tables -> answers -> cli, client, server

Rooms are layered (`pyproject.toml` says who may import whom), each `__init__` says what lives there, and where to
begin. Beside them are small modules that every room may use: errors, places in a log, units, records. What programs
may rely on is the package `fairway`; nothing here is promised to anybody. Begin with `log`, then `engine`, then
`operators`.
"""
