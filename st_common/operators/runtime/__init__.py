"""The one step: in which order operators are asked, and what becomes of the state."""
