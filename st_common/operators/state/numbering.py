"""Numbers for partners and targets in one run: known ones, and new ones that are numbered on."""

import numpy as np
import pyarrow as pa

from st_common.operators.state.intern import Interner, hashes_of
from st_common.operators.state.targets import Targets


class Numbering:
    """Numbers for partners and targets in a run; it grows by those that are new, which go into the run's delta.

    Args:
        partners: the partners that the state knows.
        targets: the targets that it knows.
    """

    def __init__(self, partners: Interner, targets: Targets) -> None:
        self.partners, self.targets = partners, targets
        self._known_partners, self._known_targets = len(partners), len(targets)
        self._single: dict[str, int] = {}

    def partners_of(self, ids: pa.Array) -> np.ndarray:
        """The number of each id; int64[n]. Unknown ones are numbered on, in the order in which they first come.

        Args:
            ids: string[n], or a dictionary of strings; repeats are looked for once.
        """
        encoded = ids.dictionary_encode()
        names = encoded.dictionary.cast(pa.string())
        number_of_name = self.known_partners_of(
            names, hashes_of(names, self.partners.key)
        )
        numbers: np.ndarray = number_of_name[
            encoded.indices.to_numpy(zero_copy_only=False)
        ]
        return numbers

    def known_partners_of(self, names: pa.Array, hashes: np.ndarray) -> np.ndarray:
        """The number of each name whose hash is known already; int64[n], as `partners_of`.

        Args:
            names: string[n], each once.
            hashes: uint64[n], under the partners' key.
        """
        numbers = self.partners.find(hashes, names)
        missing = numbers < 0
        if missing.any():
            numbers[missing] = len(self.partners) + np.arange(int(missing.sum()))
            self.partners = self.partners.with_new(
                hashes[missing], names.filter(pa.array(missing))
            )
        return numbers

    def partner_of(self, name: str) -> int:
        """The number of one id; it is looked for once in a run."""
        if name not in self._single:
            self._single[name] = int(self.partners_of(pa.array([name]))[0])
        return self._single[name]

    def targets_of(self, query: np.ndarray, partner: np.ndarray) -> np.ndarray:
        """The number of each pair of a query and a partner; int64[n]. Unknown pairs are numbered on.

        Args:
            query: int64[n], numbers of queries.
            partner: int64[n], numbers of partners, `NO_PARTNER` without.
        """
        numbers, new_query, new_partner = self.targets.number(query, partner)
        self.targets = self.targets.with_new(new_query, new_partner)
        return numbers

    def new_partners(self) -> tuple[pa.Array, np.ndarray]:
        """Ids and hashes of the partners that were unknown, in the order of their numbers."""
        start = self._known_partners
        return self.partners.ids.slice(start), self.partners.hashes[start:]

    def new_targets(self) -> tuple[np.ndarray, np.ndarray]:
        """Queries and partners of the targets that were unknown, in the order of their numbers."""
        start = self._known_targets
        return self.targets.query[start:], self.targets.partner[start:]
