"""What DAGs of `dags/` share: the operator that runs a job, forms made of what jobs declare, links, notes, our pages.

Nothing here computes: a task starts a process of the jobs' own environment and reads what it prints last. No Spark, no
tables; Airflow is imported here alone. Begin with `operator`, then `form`.
"""
