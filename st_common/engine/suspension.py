"""Queries that an engine cannot judge any more: said in the log, so that every engine and every replay agrees (S3)."""

import logging
from collections.abc import Iterable

from st_common.config.home import Home
from st_common.operations.alerts import tell
from st_common.operators.runtime.failed import Failure

_LOG = logging.getLogger(__name__)


def tell_failures(home: Home, failures: Iterable[Failure]) -> None:
    """Suspends queries that cannot be judged any more: a control row and an alert for each that is not suspended yet.

    It must be called before the state of the batch that showed the failures is stored: after a crash in between the
    batch is judged again, and shows them again (docs/adr/0017).

    Args:
        home: the home folder.
        failures: which versions of queries failed, and why.
    """
    from st_common.query.registry import suspend  # slow to import, and hardly any fail

    for row in suspend(home, [(one.query, one.version, one.why) for one in failures]):
        text = f"query {row.name} (version {row.version}) is judged no more: {row.why}"
        _LOG.warning("%s", text)
        tell(home, row.stream, text, level="error")
