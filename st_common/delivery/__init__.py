"""Changes leave the system by webhook, Kafka or files, at least once, in order per query, with an id that stays."""
