"""The filter `key`: fixes of one object."""

import pyarrow.compute as pc

from st_common.operators.expressions.filters.protocol import Bools, Features, Fixes


class KeyFilter:
    """Passes fixes of the object that the value names."""

    def filter_fixes(self, fixes: Fixes, value: str | None) -> Bools:
        """Which fixes are of the object whose id is the value; bool[n], none without a value."""
        is_equal: Bools = pc.equal(fixes.objects(), value or "").to_numpy(
            zero_copy_only=False
        )
        return is_equal

    def filter_pairs(
        self,
        fixes: Fixes,
        features: Features,  # noqa: ARG002
        value: str | None,
    ) -> Bools:
        """The same: what is joined has no say."""
        return self.filter_fixes(fixes, value)
