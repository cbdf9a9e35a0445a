"""Text of a query to its plan, and the registry of queries."""
