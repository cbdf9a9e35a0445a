"""Numbers, texts and names as the language of queries writes them."""


def number(value: float) -> str:
    """A number as short as it can be."""
    return repr(float(value)).removesuffix(".0")


def text_literal(value: str) -> str:
    """The text in single quotes."""
    return "'" + value.replace("'", "''") + "'"


def name_quoted(name: str) -> str:
    """The name in double quotes."""
    return '"' + name.replace('"', '""') + '"'
