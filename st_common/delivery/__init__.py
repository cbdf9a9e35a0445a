"""Changes leave the system by webhook, Kafka, MQTT, files or another stream, at least once, with an id that stays.

A delivery is a process of its own that follows the table of changes and notes how far it is. What receivers refuse for
good goes to dead letters. Begin with `deliver`, then `sink`.
"""
