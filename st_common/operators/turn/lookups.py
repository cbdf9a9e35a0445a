"""What ticks of one run would look up again and again: its objects do not change."""

import numpy as np
import pyarrow as pa

from st_common.operators.skeleton.kind_queries import KindQueries
from st_common.operators.skeleton.world import Table
from st_common.operators.state.intern import Interner
from st_common.operators.state.numbering import Numbering
from st_common.operators.state.targets import NO_PARTNER


class Lookups:
    """Numbers of focal objects, targets and partners, each found once in a run.

    Args:
        objects: all objects that the run knows; they do not change while it lasts.
        numbering: gives numbers to partners and targets, new ones too.
    """

    def __init__(self, objects: Interner, numbering: Numbering) -> None:
        self._objects, self._numbering = objects, numbering
        self._focals: dict[int, np.ndarray] = {}
        self._tables: dict[int, Table] = {}
        self._targets: dict[int, np.ndarray] = {}
        self._partner_of = np.full(
            len(objects), -1
        )  # by object, -1 as long as nobody asked
        self._object_of = np.empty(0, np.int64)  # by partner

    def focals(self, queries: KindQueries) -> np.ndarray:
        """The numbers of the queries' focal objects, int64 as `queries.ids`; -1 for those that never reported."""
        # By identity: the compiled queries live as long as the run, so that no id is used twice.
        if id(queries) not in self._focals:
            self._focals[id(queries)] = queries.find(self._objects)
        return self._focals[id(queries)]

    def table(self, queries: KindQueries) -> Table:
        """The table of the queries that a kind judges, with focal objects by the numbers that they have in this run."""
        if id(queries) not in self._tables:
            self._tables[id(queries)] = queries.table(self.focals(queries))
        return self._tables[id(queries)]

    def targets(self, queries: KindQueries) -> np.ndarray:
        """The target of each of the queries, without a partner; int64[m]. Unknown ones are numbered."""
        if id(queries) not in self._targets:
            none = np.full(len(queries.numbers), NO_PARTNER)
            self._targets[id(queries)] = self._numbering.targets_of(
                queries.numbers, none
            )
        return self._targets[id(queries)]

    def partners(self, objects: np.ndarray) -> np.ndarray:
        """The numbers of objects as partners, which are counted apart, for a partner may be a feature; int64[n].

        Args:
            objects: int64[n], numbers of objects, repeats allowed; each id is looked for once in a run.
        """
        asked = np.zeros(len(self._partner_of), bool)
        asked[objects] = True
        new = np.flatnonzero(asked & (self._partner_of < 0))
        if len(new):
            self._partner_of[new] = self._numbering.partners_of(
                self._objects.ids.take(pa.array(new))
            )
        partners: np.ndarray = self._partner_of[objects]
        return partners

    def others(self, targets: np.ndarray) -> np.ndarray:
        """The number of the object that is the partner in each of some targets (int64[n]); -1 where none is."""
        partners = self._numbering.targets.partner[targets]
        has_partner = partners != NO_PARTNER
        others = np.full(len(targets), -1)
        others[has_partner] = self.objects_of_partners()[partners[has_partner]]
        return others

    def objects_of_partners(self) -> np.ndarray:
        """The number of the object that each partner is, -1 for what is no object; int64, by the partner's number."""
        partners, known = self._numbering.partners, len(self._object_of)
        if known < len(partners):
            more = self._objects.find(
                partners.hashes[known:], partners.ids.slice(known)
            )
            self._object_of = np.concatenate([self._object_of, more])
        return self._object_of
