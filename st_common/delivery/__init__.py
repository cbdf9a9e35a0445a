"""Changes leave the system: to a webhook or to Kafka, at least once, in order per query, with an id that stays."""
