"""Numbers, texts and names as the language of queries writes them."""


def number(value: float) -> str:
    """A number as short as it can be and still be read back as the same: 3.0 is `3`, 2.5 is `2.5`, 1e20 is `1e+20`."""
    return repr(float(value)).removesuffix(".0")


def text_literal(value: str) -> str:
    """The text in single quotes, those in it doubled: O'Hare is `'O''Hare'`."""
    return "'" + value.replace("'", "''") + "'"


def name_quoted(name: str) -> str:
    """The name in double quotes, those in it doubled."""
    return '"' + name.replace('"', '""') + '"'
