"""Which name is meant: names are found whatever their case."""

from collections.abc import Collection, Iterable


def found(name: str, known: Iterable[str]) -> str:
    """The known name that `name` means, the same one if there is such, else one that differs in case; else `name`."""
    names = known if isinstance(known, Collection) else list(known)
    if name in names:
        return name
    folded = name.casefold()
    return next((each for each in names if each.casefold() == folded), name)
