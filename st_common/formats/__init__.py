"""Formats of records: all that is known of one stands in its module, and its name in `registry.FORMATS`.

A format cuts a file into records, takes the records of a segment apart, and says which settings it needs.
What the texts of a record mean is asked elsewhere, and is the same for all: see `decode/interpret.py`.

Which format a file is of is guessed by `detect`. Begin with `format`, then `csv`.
"""
