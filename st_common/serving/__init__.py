"""The read side: SQL, answers, reports; no JVM."""
