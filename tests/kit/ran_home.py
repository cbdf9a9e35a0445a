"""A home whose stream has read some records, by an engine with its archive."""

from pathlib import Path

from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.engine.run import run
from st_common.log.record_settings import log_for


def ran_home(root: Path, conf: str, stream: str, records: str) -> Home:
    """Makes a home in an empty folder, with the records as one segment of the stream's log.

    Args:
        root: the folder.
        conf: the text of its `streams.toml`.
        stream: the name of the stream.
        records: what arrives, in the stream's format.
    """
    (root / "conf").mkdir()
    (root / "conf" / "streams.toml").write_text(conf)
    home, settings = Home(root), load_streams(root / "conf")[stream]
    log_for(home, settings).append(records.encode(), arrival_us=0)
    run(home, settings, until_idle=True)
    return home
