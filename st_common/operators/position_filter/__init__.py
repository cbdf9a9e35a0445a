"""Fixes that are filtered before any operator sees them: known badly, implausible, or nothing new.

They are stored with the reason, refresh the silence of their object, and change no answer. A fix is judged beside the
last one that was accepted: `chain` has a drawing.
"""
