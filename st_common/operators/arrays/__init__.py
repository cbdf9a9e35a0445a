"""Idioms over arrays that operators share: sets of pairs as keys, bits, what comes and goes, sums."""
