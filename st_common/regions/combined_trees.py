"""Combined regions as columns of nodes, for the kernel that joins what their leaves contain."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from st_common.geometry.combined import Trees
from st_common.geometry.space import Space
from st_common.regions.region import Index, Region, StillRegion

Planted = tuple[Trees, Sequence[tuple[int, Region]]]


class _Branch(NamedTuple):
    """A node, and whether its region is all but what its set holds."""

    node: int
    complemented: bool


@dataclass(slots=True)
class _Grove:
    """The columns of `Trees` as they grow, and the leaves with their nodes."""

    parent: list[int] = field(default_factory=list)
    depth: list[int] = field(default_factory=list)
    needed: list[int] = field(default_factory=list)
    excludes: list[bool] = field(default_factory=list)
    leaves: list[tuple[int, Region]] = field(default_factory=list)

    def add(self, parent: int, depth: int) -> int:
        """A node below another one; its number."""
        self.parent.append(parent)
        self.depth.append(depth)
        self.needed.append(0)
        self.excludes.append(False)
        return len(self.parent) - 1

    def plant(self, region: Region, parent: int = -1, depth: int = 0) -> _Branch:
        """The nodes of a region; NOT turns its part around and is no node."""
        if region.joined_by == "not":
            branch = self.plant(region.operands[0], parent, depth)
            return branch._replace(complemented=not branch.complemented)
        node = self.add(parent, depth)
        if not region.joined_by:
            self.leaves.append((node, region))
            return _Branch(node, complemented=False)
        below = [self.plant(part, node, depth + 1) for part in region.operands]
        return self._joined(node, below, is_union=region.joined_by == "any")

    def _joined(self, node: int, below: list[_Branch], *, is_union: bool) -> _Branch:
        """What of its children a node needs: see the table in `geometry/combined.py`."""
        plain = [one.node for one in below if not one.complemented]
        turned = [one.node for one in below if one.complemented]
        complemented = bool(turned) and (is_union or not plain)
        if is_union:
            others, at_least = (plain, len(turned)) if turned else ([], 1)
        else:
            others, at_least = (turned, len(plain)) if plain else ([], 1)
        self.needed[node] = at_least
        for child in others:
            self.excludes[child] = True
        return _Branch(node, complemented=complemented)


def planted(regions: Sequence[Region]) -> Planted:
    """The trees of regions, in their order, and their leaves, each with its node."""
    grove = _Grove()
    roots = [grove.plant(region) for region in regions]
    trees = Trees(
        parent=np.array(grove.parent, np.int64),
        depth=np.array(grove.depth, np.int64),
        needed=np.array(grove.needed, np.int64),
        excludes=np.array(grove.excludes, np.bool_),
        roots=np.array([root.node for root in roots], np.int64),
        complemented=np.array([root.complemented for root in roots], np.bool_),
    )
    return trees, grove.leaves


class Leaves:
    """Finds the leaves that contain points: an index for each kind.

    Args:
        leaves: regions that stand still and are not combined, each with its node.
        space: what coordinates mean.
    """

    __slots__ = ("_indexes",)

    def __init__(self, leaves: Sequence[tuple[int, Region]], *, space: Space) -> None:
        kinds: dict[type[StillRegion], list[tuple[int, StillRegion]]] = {}
        for node, region in leaves:
            assert isinstance(region, StillRegion)  # noqa: S101 - `checked`, and when it was registered
            kinds.setdefault(type(region), []).append((node, region))
        self._indexes: list[tuple[np.ndarray, Index]] = [
            (
                np.array([node for node, _ in of], np.int64),
                kind.index([region for _, region in of], space=space),
            )
            for kind, of in kinds.items()
        ]

    def probe(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All pairs of a point and the node of a leaf that contains it, int64, each once."""
        pairs = [(nodes, index.probe(x, y)) for nodes, index in self._indexes]
        point = np.concatenate([of[0] for _, of in pairs])
        return point, np.concatenate([nodes[of[1]] for nodes, of in pairs])
