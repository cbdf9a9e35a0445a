"""Rejected records: which and why, and those that are good by the settings of now once more into the log.

A record comes back once, whoever asks how often (docs/adr/0088). Why a record is rejected is `decode`'s affair. Begin
with `listed`, then `replay`.
"""
