"""What one run of log rows brings, as every operator sees it: events, queries, last fixes, changes."""
