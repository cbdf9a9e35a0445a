"""Processes that run for long: a stream, a delivery, who looks after both: `python -m st_common.processes.NAME`.

A supervisor starts them, in a checkout and from a wheel; programs of schedules are in `jobs/`. How each begins and ends
is in `entry`, what it does in the library. Begin with `entry`, then `run_stream`.
"""
