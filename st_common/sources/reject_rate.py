"""Whether what a feed brings can be read: samples of it are decoded as they come, and most rejects are a warning.

arrivals   ||||||||||||||||||||||||||||    one each 2 s is looked at, a sample of it
verdicts       ^                 ^         the first soon, each further one of 30 s
"""

from dataclasses import replace

from st_common.config.stream import StreamSettings
from st_common.decode import Decoded
from st_common.errors import ConfigError
from st_common.replay.sample import PART_BYTES, Sample, sample_of_bytes
from st_common.replay.tally import Tally

_HEAD_BYTES = 1 << 12
_SAMPLE_EACH_US = 2_000_000
_PERIOD_US = 30_000_000
_MOST_DATED = 1_000
"""Of so many fixes of a payload the dates are looked at."""
_LEAST_RECORDS = 10
"""A feed that was judged is judged again by so many records at least: one odd record is no change of mind."""


class RejectRate:
    """Looks at samples of what a source brings (SPEC B6).

    Args:
        stream: the settings that say how it is read.
        source: the name of the source.
    """

    def __init__(self, stream: StreamSettings, source: str) -> None:
        # A payload begins behind the lines that are skipped.
        self._stream, self._source = replace(stream, skip_lines=0), source
        self._tally = Tally()
        self._looked_us = self._begun_us = 0
        self._is_judged = False
        self._warning: str | None = None

    def look(
        self, payload: bytes, *, arrival_us: int, decoded: Decoded | None = None
    ) -> None:
        """Looks at a sample of a payload, unless it looked at another one a moment ago.

        Args:
            payload: the records.
            arrival_us: when they came, us UTC.
            decoded: some of them, where somebody has decoded them already.
        """
        if arrival_us - self._looked_us < _SAMPLE_EACH_US:
            return
        self._looked_us = arrival_us
        self._begun_us = self._begun_us or arrival_us
        if decoded is not None:
            head = payload[:_HEAD_BYTES]
            self._tally.count(decoded.rejects, decoded.rows, head)
            self._tally.fixes.append(decoded.fixes.slice(0, _MOST_DATED))
            self._tally.arrival_us = arrival_us
            return
        sample = _sample(payload, self._stream)
        self._tally.add_sample(sample, self._stream, arrival_us=arrival_us)

    def warning(self, *, now_us: int) -> str | None:
        """What is wrong with most of what comes, and what is likely to mend it; None: it can be read."""
        tally = self._tally
        is_young = now_us - self._begun_us < _PERIOD_US
        if self._is_judged and (is_young or tally.records < _LEAST_RECORDS):
            return self._warning
        if tally.records:
            self._is_judged = True
            self._warning = self._said() if tally.is_mostly_rejected else self._odd()
            self._tally, self._begun_us = Tally(), now_us
        return self._warning

    def _odd(self) -> str | None:
        """What is odd about most dates."""
        odd = self._tally.odd_dates(self._stream)
        if odd is None or not odd.is_question:
            return None
        return f"source {self._source}: {odd.said} ({odd.mend})"

    def _said(self) -> str:
        of_what = f"{self._tally.records:,} records that source {self._source} brought"
        told = self._tally.message(self._stream.name, of_what)
        return f"{told} ({self._tally.mend(self._stream)})"


def _sample(payload: bytes, stream: StreamSettings) -> Sample:
    """Some records of a payload; all of one that is small, or no whole document."""
    all_of_it = Sample(payloads=(payload,), head=payload[:_HEAD_BYTES], is_whole=True)
    if len(payload) <= PART_BYTES:
        return all_of_it
    try:
        sample = sample_of_bytes(payload, stream)
    except ConfigError:
        return all_of_it
    return sample if sample.payloads else all_of_it
