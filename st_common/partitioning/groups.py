"""The dimensions of a group: whatever shares its regions has the same number of them (SPEC B2)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from st_common.config.stream import StreamSettings
from st_common.errors import ConfigError, LayerError
from st_common.partitioning.regions import Regions

_HINT = "a group has one number of dimensions: set another group for one of them"


@dataclass(frozen=True, slots=True)
class Member:
    """What shares the regions of a group: what people call it, such as "stream 'taxis'", and its dimensions."""

    name: str
    dimensions: int

    def __str__(self) -> str:
        """As in "stream 'taxis' has 2 dimensions"."""
        return (
            f"{self.name} has {self.dimensions} dimension{'s' * (self.dimensions > 1)}"
        )


def members_of(streams: Iterable[StreamSettings], group: str) -> list[Member]:
    """The streams of a group."""
    return [
        Member(f"stream {stream.name!r}", stream.columns.dimensions)
        for stream in streams
        if stream.group == group
    ]


def common_dimensions(group: str, members: Sequence[Member]) -> int:
    """How many dimensions the members of a group have; 2 where it has none.

    Raises:
        ConfigError: two of them have different numbers; it names both.
    """
    for other in members[1:]:
        if other.dimensions != members[0].dimensions:
            both = f"{members[0]}, {other}"
            raise ConfigError(f"group {group!r}: {both}", hint=_HINT)
    return members[0].dimensions if members else 2


def require_stream_in(regions: Regions, stream: StreamSettings) -> None:
    """Makes sure that the elements of a stream can lie in the regions of its group.

    Raises:
        ConfigError: the regions have another number of dimensions.
    """
    if regions.version == 0 or regions.is_by_place:
        return
    (own,) = members_of([stream], stream.group)
    common_dimensions(regions.group, [_of(regions), own])


def require_layer_in(regions: Regions, layer: str) -> None:
    """Makes sure that features of a layer, which have two dimensions, can lie in the regions of its group.

    Raises:
        LayerError: the regions have another number of dimensions.
    """
    if regions.dimensions != 2:
        both = f"{_of(regions)}, layer {layer!r} has 2"
        raise LayerError(f"group {regions.group!r}: {both}", hint=_HINT)


def _of(regions: Regions) -> Member:
    return Member(f"version {regions.version} of its regions", regions.dimensions)
