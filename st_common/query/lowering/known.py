"""The regions that a text may name: those that it creates itself before those of the home."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from st_common.query.areas import Areas
from st_common.regions.registry import Box, Region

if TYPE_CHECKING:
    from st_common.config.stream import StreamSettings

_UNKNOWN = Box(minx=0.0, miny=0.0, maxx=0.0, maxy=0.0)


class KnownAreas:
    """The areas of a home as the statements read so far change them. It is an `Areas` itself."""

    def __init__(self, home: Areas | None) -> None:
        self._home = home
        self._own: dict[str, tuple[str, Region | None]] = {}
        self._called: dict[str, None] = {}

    def create(self, name: str, region: Region | None) -> None:
        """From here on the name means this region; None is one that was refused, of which nothing more is said."""
        self._own[name.casefold()] = name, region or _UNKNOWN

    def drop(self, name: str) -> None:
        """From here on the name means nothing."""
        self._own[name.casefold()] = name, None

    def named(self, name: str) -> Region | None:
        """The area of this name; None when there is none."""
        self._called[name] = None
        return self.as_it_is(name)

    def as_it_is(self, name: str) -> Region | None:
        """The same, and the name is none that was looked up."""
        own = self._own.get(name.casefold())
        if own is not None:
            return own[1]
        return self._home.named(name) if self._home is not None else None

    def has(self, name: str) -> bool:
        """Whether there is an area of this name; it does not count as looked up."""
        return name.casefold() in map(str.casefold, self.names())

    def take_called(self) -> tuple[str, ...]:
        """The names that were looked up since this was asked last, in their order."""
        called, self._called = tuple(self._called), {}
        return called

    def feature(self, layer: str, fid: str) -> Region | None:
        """What a feature of a layer covers; None when there is no such feature."""
        return self._home.feature(layer, fid) if self._home is not None else None

    def why_not(self, layer: str, fid: str) -> str:
        """Why a layer was loaded without a feature that its file has; "" where it has none."""
        return self._home.why_not(layer, fid) if self._home is not None else ""

    def names(self) -> Collection[str]:
        """The names of all areas."""
        known = {
            name.casefold(): name
            for name in (self._home.names() if self._home is not None else ())
        }
        known |= {fold: name for fold, (name, _) in self._own.items()}
        return [
            name
            for fold, name in known.items()
            if fold not in self._own or self._own[fold][1] is not None
        ]

    def layers(self) -> Collection[str]:
        """The names of all layers."""
        return self._home.layers() if self._home is not None else ()

    def streams(self) -> "Mapping[str, StreamSettings]":
        """The streams that a query may be over, by name."""
        return self._home.streams() if self._home is not None else {}

    def group_of(self, layer: str) -> str | None:
        """The group of a layer that there is; None where its table does not say."""
        return self._home.group_of(layer) if self._home is not None else None
