"""The columns of lines of boxes, beside the sides that settings name."""

OF_LINE = ("key", "text")
