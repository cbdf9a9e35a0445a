"""The process that Spark forks Python workers from: PySpark's own, without zip files on the way of imports.

PySpark forgets at the start of every task what it knows of `sys.path`, and Python then reads the directory of
pyspark.zip again for each package in it: some 15 % of what a worker does in a small batch. What the zip files hold is
installed as packages too.
"""

import sys

from st_common.memory import keep_freed_memory


def forget_zips() -> None:
    """Takes zip files off the path, and off what is known of it: both are asked when a task forgets."""
    sys.path[:] = [place for place in sys.path if not place.endswith(".zip")]
    for place in [known for known in sys.path_importer_cache if ".zip" in known]:
        del sys.path_importer_cache[place]


if __name__ == "__main__":
    forget_zips()
    keep_freed_memory()  # the workers are forked from here
    from pyspark.daemon import manager  # from the packages: the zips are gone

    manager()  # type: ignore[no-untyped-call]
