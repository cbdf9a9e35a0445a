"""Processes that run for long: a stream, a delivery, who looks after both: `python -m st_common.processes.NAME`.

A supervisor starts them, in a checkout and from a wheel. `jobs/` has them too, beside the programs of schedules.
"""
