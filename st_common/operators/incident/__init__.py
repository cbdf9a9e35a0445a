"""Incidents: conditions that hold for some time, with a beginning, a duration and an end."""
