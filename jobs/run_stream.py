"""Runs a stream's engine: `python -m jobs.run_stream` is `python -m st_common.processes.run_stream`."""

import sys

from st_common.processes.run_stream import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
