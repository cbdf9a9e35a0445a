"""One Spark session for all tests that need one: it takes long to start."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """A session on two cores; what the JVM prints goes to a file."""
    from st_common.spark.session import session

    made = session("tests", memory="2g", log_file=tmp_path_factory.mktemp("spark") / "spark.log")
    yield made
    made.stop()
