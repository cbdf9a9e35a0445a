"""What some records of a stream are, fixes or rejects, and what is likely to mend it where most are rejects."""

from collections import Counter
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from st_common.config.stream import StreamSettings
from st_common.decode import Reason, decode
from st_common.decode.zones import quarters_ahead
from st_common.formats.registry import format_of, names_of_formats
from st_common.replay.odd_dates import OddDates, odd_dates
from st_common.replay.sample import Sample
from st_common.replay.text import utf16_of

_SHOWN = 80  # characters of a record
_NOT_ABOUT_FIXES = tuple(
    reason.name.lower() for reason in (Reason.NO_POSITION, Reason.FILTERED_OUT)
)
_AHEAD = Reason.TOO_FAR_AHEAD.name.lower()
_MENDS = {
    "missing_column": "columns in the settings are spelled as in the header; delimiter says what separates them",
    "ragged": "delimiter and quote say how fields are separated; header = false when there is no header",
    "missing_object": "columns.object names the column of ids",
    "missing_time": "columns.event_ts names the column of times; without it the arrival is the time",
    "bad_time": "time_unit says how times are written: s, ms, us, iso or a format",
    "missing_position": "columns.x and columns.y name the coordinates",
    "bad_number": "columns.x and columns.y name the coordinates; decimal and coordinates say how they are written",
    "out_of_crs": "x is the longitude and y the latitude: are they exchanged? crs says in which system they are",
    "no_point": "a fix is a point, POINT (x y) or WKB, in columns.place, or two numbers, of which place_order says the "
    "order; fairway layer load takes lines and areas, columns.shape makes elements of them",
    "bad_box": "columns.box names the sides in pairs, the low one first: lo1, hi1, lo2, hi2",
    "no_shape": "columns.shape names a column of WKT, WKB or GeoJSON geometries, and they must be valid",
    "bad_json": f"format says what the file is: {names_of_formats()}",
    "no_json_object": f"format says what the file is: {names_of_formats()}",
    "bad_utf8": 'encoding says in which one the text is, where it is not UTF-8: encoding = "windows-1252"',
    "filtered_out": "where lets none of them in: its columns and values are spelled as in the records",
    "nul": "the file must be UTF-8, without NUL bytes: convert it, as with iconv -t UTF-8",
}


@dataclass(slots=True)
class Tally:
    """Counts of records that were looked at.

    Attributes:
        records: how many there were.
        reasons: of each reason how many rejects.
        examples: of each reason the first record, and the first bytes of what it came in.
        fixes: those that are none of the rejects, one table for each payload.
        ahead_h: by how many hours fixes are ahead of their arrival, as times of another zone are; None: they are not.
        twice: how many fixes have a local time that clocks showed twice.
        never: how many rejects have one that clocks never showed.
        arrival_us: when the last of them came, us UTC.
    """

    records: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    examples: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)
    fixes: list[pa.Table] = field(default_factory=list)
    ahead_h: float | None = None
    twice: int = 0
    never: int = 0
    arrival_us: int = 0

    def add_sample(
        self, sample: Sample, stream: StreamSettings, *, arrival_us: int
    ) -> None:
        """Decodes the records of a sample, and counts them."""
        for payload in sample.payloads:
            self.add(payload, sample.head, stream, arrival_us=arrival_us)

    def add(
        self, payload: bytes, head: bytes, stream: StreamSettings, *, arrival_us: int
    ) -> None:
        """Decodes the records of a payload, and counts them.

        Args:
            payload: of a segment.
            head: its first bytes, or those of what it came in: a header, or a record.
            stream: the settings.
            arrival_us: when it came, us UTC.
        """
        decoded = decode(payload, stream, arrival_us=arrival_us)
        self.fixes.append(decoded.fixes)
        self.arrival_us = arrival_us
        self.twice += decoded.twice
        self.never += decoded.never
        self.count(decoded.rejects, decoded.rows, head)
        if self.reasons[_AHEAD] and self.ahead_h is None:
            self.ahead_h = _ahead_h(payload, stream, arrival_us)

    def count(self, rejects: pa.Table, records: int, head: bytes) -> None:
        """Counts records that are decoded.

        Args:
            rejects: those that are no fixes.
            records: how many there are in all.
            head: as for `add`.
        """
        self.records += records
        found = pc.value_counts(rejects["reason"].combine_chunks()).to_pylist()
        for reason, count in ((str(one["values"]), one["counts"]) for one in found):
            self.reasons[reason] += count
            if reason not in self.examples:
                of_it = rejects.filter(pc.equal(rejects["reason"], reason))
                self.examples[reason] = (of_it["raw"][0].as_py(), head)

    @property
    def good(self) -> int:
        """How many of the records are fixes."""
        return self.records - self.reasons.total()

    @property
    def is_mostly_rejected(self) -> bool:
        """Whether more than half cannot be read of the records that are about positions, or none of them all is."""
        others = sum(self.reasons[reason] for reason in _NOT_ABOUT_FIXES)
        about, bad = self.records - others, self.reasons.total() - others
        return 2 * bad > about or (about == 0 and others > 0)

    def message(self, stream: str, of_what: str) -> str:
        """What is wrong with most of them: counts, the main reason, and a record that has it.

        Args:
            stream: its name.
            of_what: which records these are, such as `the first 20 records of fixes.csv`.
        """
        reason = self._main_reason()
        raw, _ = self.examples[reason]
        shown = raw.decode("utf-8", "replace")[:_SHOWN]
        what = f"{self.reasons.total():,} of {of_what}"
        return f"{what} are nothing that stream {stream!r} can read: mostly {reason}, such as {shown!r}"

    def mend(self, stream: StreamSettings) -> str:
        """What is likely to mend it."""
        reason = self._main_reason()
        _, head = self.examples[reason]
        if utf16_of(head) is not None:
            return "the text is UTF-16: convert it, as with iconv -f UTF-16 -t UTF-8"
        if reason == _AHEAD:
            return _mend_of_time(self.ahead_h)
        usual = _MENDS.get(reason, "compare the records with the stream's settings")
        return format_of(stream.format).mend(reason, head, stream) or usual

    def odd_dates(self, stream: StreamSettings) -> OddDates | None:
        """What is odd about the dates of the fixes; None: nothing."""
        return odd_dates(self.fixes, stream, arrival_us=self.arrival_us)

    def _main_reason(self) -> str:
        return self.reasons.most_common(1)[0][0]


def _ahead_h(payload: bytes, stream: StreamSettings, arrival_us: int) -> float | None:
    """By how many hours fixes are ahead of their arrival that are rejected for that, where these look like a zone."""
    of_any_time = decode(
        payload, replace(stream, max_ahead_s=None), arrival_us=arrival_us
    )
    ahead = of_any_time.fixes["event_ts"].to_numpy() - arrival_us
    return quarters_ahead(ahead[ahead > round((stream.max_ahead_s or 0) * 1e6)])


def _mend_of_time(ahead_h: float | None) -> str:
    """What mends times that are ahead of their arrival."""
    if ahead_h is not None:
        return (
            f"they are {ahead_h:g} h ahead of their arrival, as times of a zone are: "
            'time_zone = "Europe/Berlin", or as the zone is called'
        )
    return "max_ahead_s says how far a time may be past its arrival; is the day before the month, and the clock right?"
