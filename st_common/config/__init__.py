"""What people set: files of settings, command lines of jobs, the environment, and where everything of a home lies.

Each key and each parameter is declared once: its type, its default and its text. Parsing, errors, the page of the
settings, the comments of `conf/`, JSON schemas, help and forms are made of that. Nothing here knows what a setting is
for, and nothing slow is imported: every command starts by reading settings. Begin with `keys`, then `values`.
"""
