"""How JVMs of tests are started."""

QUICK_TO_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Each lives for seconds, in which a better compiler and collector cost more than they bring: a session of Spark that
starts and computes little takes 12.9 s of CPU with these and 21.2 s without."""
