"""The parts of large layers that a process has, and what others ask of them (docs/adr/0084).

A part is some regions of a layer. Nothing is told beforehand: the index of a part is read when it is asked for the
first time, and let go of when others were asked for since, and memory is needed.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from st_common.geometry.borders import Segments
from st_common.geometry.enlarged import Growth
from st_common.geometry.space import Space
from st_common.home import Home
from st_common.layers.index import LayerIndex
from st_common.layers.stored import load_part

Ints = npt.NDArray[np.int64]
Arrays = Mapping[str, np.ndarray]

_MOST_BYTES = 1 << 30
_Key = tuple[str, int, tuple[str, ...]]


class _Held:
    """The index of a part, which one thread uses at a time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.index: LayerIndex | None = None


class RegionService:
    """Answers for parts of layers; from several threads.

    Args:
        home: where the tables of layers lie.
        space: what coordinates mean.
        most_bytes: how much memory indexes may take together; that of one part is always kept.
    """

    def __init__(
        self, home: Home, space: Space, *, most_bytes: int = _MOST_BYTES
    ) -> None:
        self._home, self._space, self._most = home, space, most_bytes
        self._held: OrderedDict[_Key, _Held] = OrderedDict()
        self._lock = threading.Lock()

    def answer(
        self, asked: Mapping[str, Any], arrays: Arrays
    ) -> tuple[list[int], dict[str, np.ndarray]]:
        """What is asked of some parts of a layer, part after part.

        Args:
            asked: `what`, a method of `LayerIndex`, with its `options`, a dict; `layer` and `version`; `parts`, the
                regions of each, and in `counts` how many rows of the arrays it has.
            arrays: the arguments of the method by name, the rows of all parts one after the other. Features are
                numbered in their part.

        Returns:
            How many rows the answer for each part has; and the arrays, part after part: `point`, `feature` of pairs,
            numbered in their part; or `value` (`x` and `y` of places), one for each row that was asked.

        Raises:
            LayerError: the layer cannot be read.
            TransientError: it cannot be read now.
        """
        ends, answers = np.cumsum(asked["counts"]), []
        for part, start, end in zip(
            asked["parts"], ends - asked["counts"], ends, strict=True
        ):
            key = asked["layer"], asked["version"], tuple(part)
            mine = {name: values[start:end] for name, values in arrays.items()}
            answers.append(self._asked(key, asked, mine))
        names = _ANSWERS[asked["what"]]
        return [len(one[0]) for one in answers], {
            name: np.concatenate([one[place] for one in answers])
            for place, name in enumerate(names)
        }

    @property
    def parts(self) -> list[_Key]:
        """Layer, version and regions of the indexes that are held."""
        with self._lock:
            return [key for key, held in self._held.items() if held.index is not None]

    @property
    def nbytes(self) -> int:
        """About how much memory the geometries of all parts take that are held."""
        with self._lock:
            held = [one.index for one in self._held.values()]
        return sum(index.nbytes for index in held if index is not None)

    def _asked(
        self, key: _Key, asked: Mapping[str, Any], arrays: Arrays
    ) -> Sequence[np.ndarray]:
        with self._lock:
            held = self._held.setdefault(key, _Held())
            self._held.move_to_end(key)
        with held.lock:
            if held.index is None:
                held.index = load_part(self._home, *key, space=self._space)
                self._make_room()
            return _ASKED[asked["what"]](held.index, asked["options"], arrays)

    def _make_room(self) -> None:
        """Lets go of those parts that were not asked for the longest."""
        with self._lock:
            known = [(key, held.index) for key, held in self._held.items()]
            total = sum(index.nbytes for _, index in known if index is not None)
            for key, index in known[:-1]:
                if total <= self._most:
                    return
                if index is not None:
                    total -= index.nbytes
                    del self._held[key]


def _match(
    index: LayerIndex, options: Mapping[str, Any], arrays: Arrays
) -> tuple[Ints, Ints]:
    growth = Growth(**options["growth"])
    return index.match(
        arrays["x"],
        arrays["y"],
        **_chosen(options),
        within=options["within"],
        growth=growth,
    )


def _crossed(
    index: LayerIndex, options: Mapping[str, Any], arrays: Arrays
) -> tuple[Ints, Ints]:
    return index.crossed(Segments(**arrays), **_chosen(options))


def _chosen(options: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "distance_m": options["distance_m"],
        "kinds": tuple(options["kinds"]),
        "tags": tuple((name, value) for name, value in options["tags"]),
    }


def _distances(
    index: LayerIndex, options: Mapping[str, Any], arrays: Arrays
) -> tuple[np.ndarray]:
    asked = arrays["x"], arrays["y"], arrays["feature"]
    return (index.distances(*asked, to_border=options["to_border"]),)


def _nearest(
    index: LayerIndex, _options: Mapping[str, Any], arrays: Arrays
) -> tuple[np.ndarray, np.ndarray]:
    x, y = index.nearest(arrays["x"], arrays["y"], arrays["feature"])
    return x, y


_ASKED = {
    "match": _match,
    "crossed": _crossed,
    "distances": _distances,
    "nearest": _nearest,
}
_PAIRS = ("point", "feature")
_ANSWERS = {
    "match": _PAIRS,
    "crossed": _PAIRS,
    "distances": ("value",),
    "nearest": ("x", "y"),
}
