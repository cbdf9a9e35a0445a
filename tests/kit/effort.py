"""How much a law tries: so many cases, in proportion to the profile that is loaded, or as many as its time allows."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from hypothesis import settings
from hypothesis.errors import StopTest, UnsatisfiedAssumption

QUICK = 30
"""How many examples a law tries in the quick profile when it says nothing."""
AGAIN = 3
"""How many of them CI tries that are the same each time."""
DEEP = 1000
"""How many each law tries at most where it looks further: for its share of a time, or however long it takes."""
FEWEST = 2
"""How many a law draws though its time is up: the first of all is the smallest there is, and the same each time."""


def tries(examples: int) -> settings:
    """The settings of a law that tries so many examples in the quick profile, in others in proportion, at least one.

    Profiles that look further give each law as many as any other: what it costs is no reason to look less.
    The profile must be loaded before the law is defined, as `tests/conftest.py` does.
    """
    loaded = settings.default.max_examples if settings.default else QUICK
    if loaded >= DEEP:
        return settings(max_examples=loaded)
    return settings(max_examples=max(1, round(examples * loaded / QUICK)))


class TimeIsUp(KeyboardInterrupt):
    """Ends the search of a law that has found nothing, as a user might: hypothesis takes it for no failure."""


@dataclass(slots=True)
class Span:
    """The time of one law, in seconds, of which it makes as many cases as it can.

    Explicit examples run whatever they take. Once a case fails there is no limit any more: the smallest that fails is
    looked for, and printed.
    """

    seconds: float
    most: int = DEEP
    """So many cases are enough: others had the rest."""
    clock: Callable[[], float] = monotonic
    cases: int = 0
    """How many were drawn and tried, without those that the law did not want."""
    has_failed: bool = False
    began: float = field(init=False)
    takes: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self.began = self.clock()

    @contextmanager
    def limit(self, law: Any) -> Iterator[None]:
        """Within it, the law (a function under `given`) ends when its time is up."""
        inner = law.hypothesis.inner_test
        self.cases = -len(getattr(law, "hypothesis_explicit_examples", ()))
        law.hypothesis.inner_test = self._timed(inner)
        try:
            yield
        except TimeIsUp:
            pass
        finally:
            law.hypothesis.inner_test = inner
            self.takes = self.clock() - self.began
            self.cases = max(0, self.cases)

    def _timed(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(inner)
        def one(*args: Any, **kwargs: Any) -> None:
            try:
                inner(*args, **kwargs)
            except (StopTest, UnsatisfiedAssumption, KeyboardInterrupt):
                raise  # what was drawn is no case of this law, or was not tried to its end
            except BaseException:
                self.has_failed = True
                raise
            self.cases += 1
            is_up = self.clock() - self.began >= self.seconds or self.cases >= self.most
            if is_up and self.cases >= FEWEST and not self.has_failed:
                raise TimeIsUp

        return one
