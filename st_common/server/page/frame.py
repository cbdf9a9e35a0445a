"""Where a map shows coordinates: degrees as they are, those of planes at a pretend place near 0, 0.

    plane    x 500..1500, y 0..400    ->    longitude -0.5..0.5, latitude -0.2..0.2

All planes of a home have one pretend place, so that they lie to each other as they do.
"""

import threading
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from st_common.config.stream import StreamSettings
from st_common.server.page.readers import live_places
from st_common.server.page.watch import Box, extent_of
from st_common.server.parameters import Parameters

Floats = npt.NDArray[np.float64]

_HALF_DEGREES = 0.5
_DEGREE_M = 111_195.0
_LEAST_SHARE = 0.002  # of the half degree: what is smaller is enlarged


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """From the coordinates of a stream to those of the map.

    Attributes:
        x0: what lies at longitude 0.
        y0: what lies at latitude 0.
        s: degrees of the map for a unit.
        is_globe: coordinates are degrees already.
    """

    x0: float = 0.0
    y0: float = 0.0
    s: float = 1.0
    is_globe: bool = False

    def lon(self, x: Floats) -> Floats:
        """Longitudes on the map."""
        return x if self.is_globe else (x - self.x0) * self.s

    def lat(self, y: Floats) -> Floats:
        """Latitudes on the map."""
        return y if self.is_globe else (y - self.y0) * self.s

    def placed(self, points: Floats) -> Floats:
        """Points on the map; float64[n, 2]."""
        return np.stack([self.lon(points[:, 0]), self.lat(points[:, 1])], axis=1)

    def back(self, box: Floats) -> Floats:
        """A box of the map, float64[4], in the coordinates of the stream."""
        if self.is_globe:
            return box
        return np.array(box) / self.s + [self.x0, self.y0, self.x0, self.y0]

    def box(self, box: Box | None) -> Box | None:
        """A box on the map; None stays."""
        if box is None:
            return None
        corners = np.array(box).reshape(2, 2)
        west, south, east, north = self.placed(corners).ravel().tolist()
        return west, south, east, north

    @property
    def tag(self) -> str:
        """Names it in cursors: with another frame all places are others."""
        return f"{zlib.crc32(repr(self).encode()):08x}"

    def to_json(self, unit: str | None) -> Mapping[str, Any]:
        """What the page turns places back by."""
        if self.is_globe:
            return {"kind": "globe"}
        return {
            "kind": "plane",
            "x0": self.x0,
            "y0": self.y0,
            "s": self.s,
            "unit": unit,
        }


GLOBE = Frame(is_globe=True)


class Frames:
    """The pretend place of the planes of a home: chosen once something is known to lie in them, and kept then."""

    def __init__(self, plane: Frame | None = None) -> None:
        self._lock = threading.Lock()
        self._plane = plane

    def plane(self, asked: Parameters) -> Frame:
        """The frame of all planes; one for the time being while nothing lies in them."""
        with self._lock:
            if self._plane is None:
                self._plane = _around(_seen(asked))
            return self._plane or Frame(s=_HALF_DEGREES / 1000)


def frame_of(asked: Parameters, stream: StreamSettings) -> Frame:
    """Where the map shows a stream."""
    if not stream.space.is_flat:
        return GLOBE
    return plane_of(asked)


def plane_of(asked: Parameters) -> Frame:
    """Where the map shows planes."""
    return asked.kept.of(Frames).plane(asked)


def _seen(asked: Parameters) -> Iterator[tuple[StreamSettings, Box]]:
    """Of each stream in a plane the box in which nearly all objects are; of those without objects nothing."""
    for stream in asked.place.streams().values():
        if not stream.space.is_flat:
            continue
        places = live_places(asked, stream)
        places.look()
        box = extent_of(*places.where())
        if box is not None:
            yield stream, box


def _around(seen: Iterator[tuple[StreamSettings, Box]]) -> Frame | None:
    """A frame around boxes; true to scale where units have a length and it is neither tiny nor huge."""
    known = list(seen)
    if not known:
        return None
    boxes = np.array([box for _, box in known])
    low, high = boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)
    (x0, y0), half = (low + high) / 2, float((high - low).max()) / 2
    s = _HALF_DEGREES / half if half > 0 else 1.0
    true = next((one.unit_m / _DEGREE_M for one, _ in known if one.epsg), s)
    if _LEAST_SHARE * s <= true <= s:
        s = true
    return Frame(x0=float(x0), y0=float(y0), s=s)
