"""Grouping keys of shards: each falls into another partition of Spark's shuffle, else some cores stay idle."""

import numpy as np
import numpy.typing as npt

from st_common.errors import ConfigError

_SEED = 42
_CANDIDATES_EACH = 64
Words = npt.NDArray[np.uint32]


def shard_keys(shards: int, partitions: int | None = None) -> tuple[int, ...]:
    """A grouping key for each shard, the least ones, by the partitions that Spark's `hash` gives them.

    Found here, for a job of Spark that only asks for hashes takes seconds at a start.

    Args:
        shards: how many.
        partitions: those of the shuffle; None: as many as shards.

    Raises:
        ConfigError: there are fewer partitions than shards.
    """
    partitions = shards if partitions is None else partitions
    if partitions < shards:
        raise ConfigError(
            f"{shards} shards do not fit into {partitions} partitions of a shuffle",
            hint="set spark.sql.shuffle.partitions to as many as there are shards",
        )
    candidates = np.arange(_CANDIDATES_EACH * partitions, dtype=np.uint32)
    placed = _hashes(candidates).view(np.int32) % partitions
    _, first = np.unique(placed, return_index=True)
    return tuple(int(candidates[at]) for at in first[:shards])


def _hashes(numbers: Words) -> Words:
    """What Spark's `hash` gives for each number of type int: Murmur3 in 32 bits of its four bytes."""
    with np.errstate(over="ignore"):
        mixed = numbers * np.uint32(0xCC9E2D51)
        mixed = _turned(mixed, 15) * np.uint32(0x1B873593)
        hashed = _turned(mixed ^ np.uint32(_SEED), 13) * np.uint32(5)
        hashed = (hashed + np.uint32(0xE6546B64)) ^ np.uint32(4)
        hashed = (hashed ^ (hashed >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        hashed = (hashed ^ (hashed >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        return hashed ^ (hashed >> np.uint32(16))


def _turned(words: Words, bits: int) -> Words:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))
