"""One DAG per file; no Spark here."""
