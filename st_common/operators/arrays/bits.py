"""What is asked of every object or fix, as a bit for each of many questions: an eighth of what truth values take."""

from collections.abc import Callable

import numpy as np

TOGETHER = 256
"""Questions that are asked at once, a multiple of 8: what a database answers stands in memory as a whole."""


def asked_together(
    questions: int, rows: int, ask: Callable[[int, int], np.ndarray]
) -> np.ndarray:
    """The answers to many questions about many rows, a bit for each.

    `ask` is called for at most `TOGETHER` questions at a time, so that no truth value for every pair stands in memory.

    Args:
        questions: how many there are.
        rows: how many rows each is asked of. With 0 nothing is asked.
        ask: gives bool[end - start, rows], the answers to questions `start` to before `end`.

    Returns:
        uint8[rows, ceil(questions / 8)]; question 0 is the highest bit of byte 0, as `np.packbits` lays them out.

    Example:
        10 questions of 2 rows, the first yes to the even ones, the second to multiples of 3:

        question   01234567 89
        row 0      10101010 10......    170 128
        row 1      10010010 01......    146  64
    """
    bits = np.zeros((rows, -(-questions // 8)), np.uint8)
    for start in range(0, questions if rows else 0, TOGETHER):
        end = min(start + TOGETHER, questions)
        bits[:, start >> 3 : (end + 7) >> 3] = np.packbits(ask(start, end), axis=0).T
    return bits


def answers_of(bits: np.ndarray, question: np.ndarray) -> np.ndarray:
    """The answers of all rows to some questions.

    Args:
        bits: uint8[rows, bytes], as `asked_together` gives it.
        question: int64[q], numbers of questions.

    Returns:
        bool[rows, q].
    """
    answers: np.ndarray = (bits[:, question >> 3] >> (7 - (question & 7))) & 1 == 1
    return answers


def bit_of(bits: np.ndarray, row: np.ndarray, question: np.ndarray) -> np.ndarray:
    """The answer for each pair of a row and a question.

    Args:
        bits: uint8[rows, bytes], as `asked_together` gives it.
        row: int64[p].
        question: int64[p].

    Returns:
        bool[p].
    """
    answers: np.ndarray = (bits[row, question >> 3] >> (7 - (question & 7))) & 1 == 1
    return answers
