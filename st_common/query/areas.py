"""Regions that have a name: what the text of a query may call, and a plan holds as it is at that moment (SPEC P4)."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Protocol

from st_common.regions.registry import Region

if TYPE_CHECKING:
    from st_common.config.stream import StreamSettings


class Areas(Protocol):
    """The named areas of a home, and the features of its layers. Names are found in any case."""

    def named(self, name: str) -> Region | None:
        """The area of this name; None when there is none."""

    def as_it_is(self, name: str) -> Region | None:
        """As `named`, for who does not follow the area when it is replaced."""

    def feature(self, layer: str, fid: str) -> Region | None:
        """What a feature of a layer covers; None when the layer has no such feature, or nothing that has an extent."""

    def names(self) -> Collection[str]:
        """The names of all areas."""

    def layers(self) -> Collection[str]:
        """The names of all layers."""

    def streams(self) -> "Mapping[str, StreamSettings]":
        """The streams that a query may be over, by name."""

    def group_of(self, layer: str) -> str | None:
        """The group of a layer that there is; None where its table does not say."""

    def why_not(self, layer: str, fid: str) -> str:
        """Why the newest load of a layer left a feature out; "" where it did not."""
