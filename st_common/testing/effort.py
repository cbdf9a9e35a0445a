"""How much a law tries: each says what it takes in the quick profile, and the profile that is loaded scales it."""

from hypothesis import settings

QUICK = 30
"""How many examples a law tries in the quick profile when it says nothing."""
AGAIN, ANEW = 3, 4
"""How CI shares them out: cases that are the same each time, and others for each commit, by a seed that it prints."""


def tries(examples: int) -> settings:
    """The settings of a law that tries so many examples in the quick profile, in others in proportion, at least one.

    The profile must be loaded before the law is defined, as `tests/conftest.py` does.
    """
    loaded = settings.default.max_examples if settings.default else QUICK
    return settings(max_examples=max(1, round(examples * loaded / QUICK)))
