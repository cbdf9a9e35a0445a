"""The messages of a payload of AIS, with what came before it and was not finished."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from st_common.formats.ais_groups import awaited
from st_common.formats.ais_messages import Messages, messages_of
from st_common.formats.ais_sentences import (
    MOST_BETWEEN,
    Lines,
    Sentences,
    lines_of,
    sentences_of,
)
from st_common.formats.records import RAW_LIMIT, Reason
from st_common.formats.said_before import SaidBefore
from st_common.formats.spans import Ints

_LONGEST = 1024
"""Bytes of a line that is kept for the next payload: a sentence has 82, with its tag block some 200."""


@dataclass(frozen=True, slots=True)
class Heard:
    """Records and messages of a payload, those in front of it first.

    Attributes:
        lines: the records.
        own_start: where the payload's own bytes begin in their buffer.
        sentences: those of the records that are sentences.
        at: int64[n], how many of the sentences stand in front of each record; below 0 of one that came before.
        messages: what these make.
        fault: int8[n], why each record is no message; of those that are part of one `no_position`.
    """

    lines: Lines
    own_start: int
    sentences: Sentences
    at: Ints
    messages: Messages
    fault: NDArray[np.int8]

    @property
    def earlier(self) -> int:
        """How many of the records came before the payload, and were counted then."""
        return int(np.searchsorted(self.lines.records.ends, self.own_start, "right"))

    def raw(self, which: Ints) -> pa.Array:
        """The bytes of some records of the payload, without what came before it."""
        records = self.lines.records.select(which + self.earlier)
        starts = np.maximum(records.starts, self.own_start)
        own = type(records)(records.buffer, starts, records.ends)
        return own.texts(RAW_LIMIT)

    def unfinished(self) -> Sequence[tuple[int, str]]:
        """The sentences whose messages may go on behind the payload, each with how many sentences ago it came.

        Of lines whose tag groups alone go on it is the tag block.
        """
        rows = self.sentences.rows[self.messages.open]
        received = self.sentences.received.take(
            pa.array(np.flatnonzero(self.messages.open))
        )
        texts = _texts(self.lines.sentences.select(rows).texts())
        lines = {
            row: f"{time}\n{text}" if time else text
            for row, time, text in zip(
                rows.tolist(), _texts(received), texts, strict=True
            )
        }
        blocks = awaited(self.lines.sentences.texts(), self.at)
        lines = {row: text.decode("latin-1") for row, text in blocks.items()} | lines
        behind = int(np.sum(self.at[self.sentences.rows] >= 0))
        pairs = ((behind - int(self.at[row]), lines[row]) for row in sorted(lines))
        return tuple(
            (ago, line)
            for ago, line in pairs
            if ago <= MOST_BETWEEN and len(line) <= _LONGEST
        )

    def received(self) -> str:
        """When the first sentence behind the payload was received, where a last line says so; else nothing."""
        lines = _texts(self.lines.rest.texts())
        return "".join(line for line in lines if len(line) <= _LONGEST)


def heard_in(records: bytes, before: SaidBefore) -> Heard:
    """What is heard in the records of a payload, given what was not finished before."""
    in_front = [text for _, text in before.unfinished] + [before.received] * bool(
        before.received
    )
    earlier = "".join(f"{text}\n" for text in in_front).encode("latin-1", "replace")
    ago = [min(max(count, 0), MOST_BETWEEN + 1) for count, _ in before.unfinished]
    lines = lines_of(earlier + records)
    at, sentences, fault = sentences_of(lines, -np.array(ago, np.int64))
    messages = messages_of(sentences)
    parts = np.where(messages.lost, Reason.INCOMPLETE, Reason.NO_POSITION)
    fault[sentences.rows] = parts
    return Heard(lines, len(earlier), sentences, at, messages, fault)


def _texts(values: pa.Array) -> list[str]:
    """Bytes as texts, a character each."""
    return [bytes(value).decode("latin-1") for value in values.to_pylist()]
