"""Who still needs old rows of a stream's tables: nothing is purged that one of them has not read."""

from collections.abc import Iterator
from pathlib import Path

from st_common import tables
from st_common.config.home import Home
from st_common.delivery.feeding_query import feed_folder
from st_common.delivery.joint_feed import note_of
from st_common.delivery.progress import PROGRESS_FILE
from st_common.history.latest import APP as LATEST
from st_common.operations.records import read_record


def readers_of(home: Home, stream: str, table: str) -> Iterator[tuple[str, int]]:
    """Who reads a table of a stream forward, each with the first place in the log that it still needs.

    Args:
        home: the home folder.
        stream: the stream.
        table: `changes`, which deliveries and feeds of other streams read, or `positions`, which `latest` is made of.

    Yields:
        A name for people, and a position.
    """
    if table == "positions":
        done = tables.committed(home.table("latest", stream), LATEST)
        yield f"latest/{stream}", 0 if done is None else done + 1
        return
    for folder in sorted((home.root / "deliveries").glob("*")):
        yield from _noted(f"delivery {folder.name}", folder / PROGRESS_FILE, stream)
    for target in sorted((home.root / "streams").glob("*")):
        for note in sorted(feed_folder(home, target.name).glob(f"{stream}.*.json")):
            yield from _noted(f"feed {note.stem} of {target.name}", note, stream)


def readers_of_log(home: Home, stream: str) -> Iterator[tuple[str, int]]:
    """Who feeds a stream or joins it with another, each with the first segment of its log that it still looks at.

    Args:
        home: the home folder.
        stream: the stream that is fed, or joined.
    """
    for folder in sorted((home.root / "streams").glob("*")):
        record = read_record(note_of(home, folder.name))
        places = {} if record is None else record["streams"]
        if stream in places:
            yield f"joint stream {folder.name}", int(places[stream].get("segment", 0))
        if stream == folder.name and places:
            written = min(int(place.get("written", 0)) for place in places.values())
            yield "who joins its streams", written
    for note in sorted(feed_folder(home, stream).glob("*.json")):
        record = read_record(note)
        yield f"feed {note.stem}", 0 if record is None else int(record["segment"])


def _noted(reader: str, note: Path, stream: str) -> Iterator[tuple[str, int]]:
    """What a reader has noted; one whose note cannot be read may need everything."""
    if not note.exists():
        return
    record = read_record(note)
    if record is None:
        yield reader, 0
    elif record.get("stream", stream) == stream:
        yield reader, max(int(record["position"]), 0)
