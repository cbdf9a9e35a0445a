"""What the driver and the tasks of a stream on Spark say to each other.

Nothing here decides an answer: that is `operators`. Begin with `crew`.
"""
