"""The command `fairway`, thin."""
