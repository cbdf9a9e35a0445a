"""One command-line program for each job: `python -m jobs.NAME`, or `spark-submit jobs/NAME.py`.

Thin: what a job takes is declared in `st_common.programs`, how it begins and ends is in `st_common.processes.entry`,
what it does is in the library (`layers`, `batch`, `maintenance`, `quality`). DAGs start them, and never import them.
Begin with `load_layer`.
"""
