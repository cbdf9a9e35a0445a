"""Numbers, texts and names as the language of queries writes them, and whole numbers as anybody does."""


def number(value: float) -> str:
    """A number as short as it can be and still be read back as the same: 3.0 is `3`, 2.5 is `2.5`, 1e20 is `1e+20`."""
    return repr(float(value)).removesuffix(".0")


def whole_number(text: str, most: int) -> int | None:
    """The number that a text writes in the digits 0 to 9, without a sign; None of other texts and of more than `most`.

    However long it is: `int` refuses more than 4,300 digits, and takes those of all scripts.
    """
    if not (text.isascii() and text.isdigit()):
        return None
    digits = text.lstrip("0") or "0"
    found = int(digits) if len(digits) <= len(str(most)) else most + 1
    return found if found <= most else None


def text_literal(value: str) -> str:
    """The text in single quotes, those in it doubled: O'Hare is `'O''Hare'`."""
    return "'" + value.replace("'", "''") + "'"


def name_quoted(name: str) -> str:
    """The name in double quotes, those in it doubled."""
    return '"' + name.replace('"', '""') + '"'
