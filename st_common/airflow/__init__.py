"""What the DAGs in dags/ share: how a job is called, and what its exit code means to Airflow. No Spark in here."""
