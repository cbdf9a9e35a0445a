"""A whole Airflow on this machine, for people (`make up`) and for tests: five processes, reachable from here alone."""
