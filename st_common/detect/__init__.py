"""What a file or a feed is: its format, columns, unit of time and system, guessed from a sample of its records.

Every guess is told with its reason, and what is in doubt is asked. Nothing here decides how a stream is read later: the
settings that it proposes do. Begin with `report`.
"""
