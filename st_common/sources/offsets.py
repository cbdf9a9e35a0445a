"""How far a source was stored, exactly: the place behind the last record that the log has, after a kill too.

    log/captures/SOURCE.json
    {"places": {"ships/0": 40}, "next": {"segment": 7, "crc": 305419896, "places": {"ships/0": 52}}}

It is written before segment 7 is: whoever reads it looks whether segment 7 holds those bytes. If so the source goes on
at 52, else at 40. Both are done under the log's lock, so that two captures of one source store each record once.
"""

import zlib
from collections.abc import Collection, Mapping
from typing import Any

from st_common.errors import FairwayError, LogError, MissingError
from st_common.log.log import Log
from st_common.operations.records import read_record, write_record

_FOLDER = "captures"


def stored_sources(log: Log) -> list[str]:
    """The names of the sources of which a log has something."""
    return sorted(path.stem for path in (log.folder / _FOLDER).glob("*.json"))


class MovedError(FairwayError):
    """Somebody else has stored records of this source meanwhile."""


class Offsets:
    """Where a source goes on, by part of it.

    Args:
        log: the log that its records go to.
        source: its name.

    Raises:
        LogError: what says so was damaged.
    """

    def __init__(self, log: Log, source: str) -> None:
        self._log = log
        self._path = log.folder / _FOLDER / f"{source}.json"
        with log.locked():
            self.known = self._stored()

    def read(self) -> Mapping[str, int]:
        """The places by the log, which whoever stores knows from now on."""
        with self._log.locked():
            self.known = self._stored()
        return self.known

    def announce(
        self,
        payload: bytes,
        places: Mapping[str, int],
        *,
        once: Collection[str] = (),
    ) -> None:
        """Says that the next segment will be this payload, and where the source goes on behind it; the log is locked.

        Args:
            payload: the bytes.
            places: where the source goes on.
            once: parts that never move: what is stored of one of them, whoever stored it, is all.

        Raises:
            MovedError: another capture has moved these parts.
            StorageError: the disk is full, or refuses.
        """
        stored = self._stored()
        for part in places:
            # Of other parts that it has moved is known by now, so what is known does not tell.
            if part in once and part in stored:
                raise MovedError(f"another capture has stored {part}")
            if stored.get(part) != self.known.get(part):
                raise MovedError(f"another capture has stored more of {part}")
        announced = {
            "segment": self._log.end(),
            "crc": zlib.crc32(payload),
            "places": dict(places),
        }
        write_record(self._path, {"places": stored, "next": announced})
        self.known = {**stored, **places}

    def forget(self, parts: set[str]) -> None:
        """Lets go of parts that are gone for good."""
        with self._log.locked():
            kept = {p: at for p, at in self._stored().items() if p not in parts}
            write_record(self._path, {"places": kept})
            self.known = kept

    def _stored(self) -> dict[str, int]:
        """The places of all parts of which something is stored."""
        noted = read_record(self._path)
        if noted is None and self._path.exists():
            raise LogError(
                f"{self._path} cannot be read: it says how much of source {self._path.stem!r} is stored",
                hint="restore it from a copy; without it the source is stored from its start again",
            )
        noted = noted or {}
        places = {str(part): int(at) for part, at in noted.get("places", {}).items()}
        announced = noted.get("next")
        if announced is not None and self._is_stored(announced):
            places |= announced["places"]
        return places

    def _is_stored(self, announced: Mapping[str, Any]) -> bool:
        number = int(announced["segment"])
        if not self._log.first() <= number < self._log.end():
            return False  # not stored; or that long ago that what comes again is late
        try:
            segment = self._log.segment(number)
        except MissingError:
            return False
        crc = segment.raw_checksum if segment.packet else segment.checksum
        is_it = not segment.control and crc == int(announced["crc"])
        if is_it:
            # Whoever stored it may have died before it was durable: no place is noted, or said, that a power cut takes.
            self._log.sync([segment])
        return is_it
