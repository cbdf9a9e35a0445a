"""How every job ends: with its summary as the last line of its output, or with one line of error and an exit code."""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from st_common.errors import FairwayError


def finish(work: Callable[[], Mapping[str, Any]], *, code_of: Callable[[Mapping[str, Any]], int] = lambda _: 0) -> int:
    """Does the work and prints its summary as one line of JSON; gives back the exit code, by default 0.

    An error for people becomes one line on stderr and its own exit code; any other error is a fault of ours, shown with
    its traceback.
    """
    try:
        summary = work()
    except FairwayError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    print(json.dumps(summary), flush=True)
    return code_of(summary)
