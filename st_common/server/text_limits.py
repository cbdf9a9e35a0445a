"""What a thread of the server understands of a text: as much as takes a moment, and no more.

A page asks at each pause of typing, so a short text must not wait for a process. What may be long goes to one:

    text of 10,000 bytes at most, few and small areas named    ->    here
    another                                                   ->    LongError, and the server asks a process
"""

from dataclasses import dataclass, field

from st_common.config.home import Home
from st_common.query.area_store import FILE, HomeAreas
from st_common.query.commit import registry_file
from st_common.regions.region import Region
from st_common.regions.registry import Area
from st_common.server.parameters import LongError, Parameters

SHORT = 10_000
"""Bytes of a text that is understood in a thread: a fifth of a second at most."""
_SMALL_FILE = 2 << 20
_NAMINGS, _CHARACTERS = 8, 200_000


def areas_of(asked: Parameters, text: bytes | str) -> HomeAreas:
    """The areas that a text may name, as fits who asks: all in a process of its own, few in a thread.

    Args:
        asked: the request.
        text: what is to be understood with them.

    Raises:
        LongError: in a thread, where the text, or the file of the areas, is long.
    """
    home = asked.place.home
    if asked.is_apart:
        return HomeAreas(home, asked.place.streams)
    if len(text) > SHORT or _areas_bytes(home) > _SMALL_FILE:
        raise LongError
    return FewAreas(home, asked.place.streams)


def _areas_bytes(home: Home) -> int:
    try:
        return registry_file(home, FILE).stat().st_size
    except OSError:
        return 0


@dataclass(frozen=True)
class FewAreas(HomeAreas):
    """The areas and features of a home, until a text has named many of them, or large ones.

    Raises:
        LongError: it has.
    """

    _named_so_far: list[int] = field(default_factory=list, repr=False, compare=False)

    def named(self, name: str) -> Region | None:
        """The region of an area; None: there is no such area."""
        return self._counted(super().named(name), 1)

    def feature(self, layer: str, fid: str) -> Area | None:
        """The surface of a feature, which takes longer to find than an area."""
        self._counted(None, 3)
        area = super().feature(layer, fid)
        self._counted(area, 0)
        return area

    def _counted(self, region: Region | None, namings: int) -> Region | None:
        size = len(region.wkt) if isinstance(region, Area) else 0
        self._named_so_far.append(size + namings * (_CHARACTERS // _NAMINGS))
        if sum(self._named_so_far) > _CHARACTERS:
            raise LongError
        return region
