"""One DAG a file; each task starts a program of `jobs/` in the jobs' own environment. No Spark, no tables.

Their forms are made of what programs take (`st_common.programs`); what DAGs share is in `st_common.airflow`. Begin with
`osm_static_load`.
"""
