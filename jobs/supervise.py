"""Ticks of the supervisor: `python -m jobs.supervise` is `python -m st_common.processes.supervise`."""

import sys

from st_common.processes.supervise import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
