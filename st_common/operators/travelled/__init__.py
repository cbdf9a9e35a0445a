"""Windows along the way that objects have come (CQL-S): RANGE and SLIDE by space, by time, by rows."""
