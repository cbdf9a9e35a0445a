"""Windows of time and of count (PLACE): fixes that qualified, until they are old."""
