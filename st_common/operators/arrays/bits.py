"""What is asked of every object or fix, as a bit for each of many questions: an eighth of what truth values take."""

from collections.abc import Callable

import numpy as np

TOGETHER = 256
"""Questions that are asked at once, a multiple of 8: what a database answers stands in memory as a whole."""


def asked_together(
    questions: int, rows: int, ask: Callable[[int, int], np.ndarray]
) -> np.ndarray:
    """uint8[rows, bytes]: a bit per row and question; `ask` gives bool[q, rows] for those from one to another."""
    bits = np.zeros((rows, -(-questions // 8)), np.uint8)
    for start in range(0, questions if rows else 0, TOGETHER):
        end = min(start + TOGETHER, questions)
        bits[:, start >> 3 : (end + 7) >> 3] = np.packbits(ask(start, end), axis=0).T
    return bits


def answers_of(bits: np.ndarray, question: np.ndarray) -> np.ndarray:
    """bool[rows, q]: the answers of all rows to some questions."""
    answers: np.ndarray = (bits[:, question >> 3] >> (7 - (question & 7))) & 1 == 1
    return answers


def bit_of(bits: np.ndarray, row: np.ndarray, question: np.ndarray) -> np.ndarray:
    """bool[p]: the answers for pairs of a row and a question."""
    answers: np.ndarray = (bits[row, question >> 3] >> (7 - (question & 7))) & 1 == 1
    return answers
