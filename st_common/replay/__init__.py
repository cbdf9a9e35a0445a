"""Files into a stream's log: opened, unpacked, sampled, put into the order of event times, cut into records.

    path, zip, pipe -> source -> sample, readable (may it go in?) -> ordered -> chunks -> files -> log

Nothing here knows a format: `formats` does. Feeds that go on are `sources`' affair. Begin with `files`, then `source`.
"""
