"""Changes leave the system by webhook, Kafka, MQTT or files, or go into the log of another stream, at least once.

    table of changes -> look -> deliver -> sink (webhook, kafka, mqtt, files) -> progress, dead letters
                             -> feeding_query, stream_feed, watermarks -> the log of another stream

A delivery is a process of its own that notes how far it is; its ids stay. The way in, by Kafka and MQTT too, is
`sources`. Begin with `deliver`, then `sink`.
"""
