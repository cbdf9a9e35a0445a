"""Small helpers for dags/."""
