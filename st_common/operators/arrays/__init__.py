"""Idioms over arrays that operators share.

keys   sets of pairs as sorted int64 keys: (7, 3) is 7 << 32 | 3, so that a set of pairs is one sorted column
turns  what of such a set comes and goes at which tick
bits   an answer of yes or no for each of many questions and objects, eight to a byte
"""
