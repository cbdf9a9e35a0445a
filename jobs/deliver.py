"""Delivers changes: `python -m jobs.deliver` is `python -m st_common.processes.deliver`."""

import sys

from st_common.processes.deliver import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
