"""Numbers and texts as the language of queries writes them."""


def number(value: float) -> str:
    """A number as short as it can be."""
    return repr(float(value)).removesuffix(".0")


def text_literal(value: str) -> str:
    """The text in single quotes."""
    return "'" + value.replace("'", "''") + "'"
