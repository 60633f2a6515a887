"""Files of puzzles: ``puzzle,solution`` lines (or puzzles alone), plain, gzip or xz."""

import gzip
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

__all__ = ["ALLOWED", "CELLS", "PuzzleError", "looks_like_a_grid", "parse_grid", "read_puzzles"]

CELLS = 81
ALLOWED = frozenset("0123456789.")
OPENERS: dict[str, Callable] = {".gz": gzip.open, ".xz": lzma.open}


class PuzzleError(ValueError):
    """A puzzle that cannot be read; the message says where and why."""


def looks_like_a_grid(text: str) -> bool:
    """81 characters, and none that a grid cannot have: the path of a file may have 81 characters too.

    >>> looks_like_a_grid("." * 81), looks_like_a_grid("/" + "." * 80)
    (True, False)
    """
    return len(text) == CELLS and ALLOWED.issuperset(text)


def parse_grid(text: str) -> np.ndarray:
    """81 characters, ``0`` or ``.`` for an empty cell, row by row: an array [9, 9] of int8.

    >>> parse_grid("53..7...." + "." * 72)[0]
    array([5, 3, 0, 0, 7, 0, 0, 0, 0], dtype=int8)
    """
    if len(text) != CELLS:
        raise PuzzleError(f"a grid has 81 characters, this one has {len(text)}: write 9 rows of 9 without spaces")
    if not ALLOWED.issuperset(text):
        place, character = next((i, c) for i, c in enumerate(text) if c not in ALLOWED)
        raise PuzzleError(f"character {character!r} at place {place + 1}: use the digits 1-9, and 0 or . for empty")
    return np.frombuffer(text.replace(".", "0").encode(), dtype=np.uint8).reshape(9, 9).astype(np.int8) - 48


def read_puzzles(path: str | Path) -> tuple[np.ndarray, np.ndarray | None]:
    """Puzzles [N, 9, 9] of a file and, if it has them, their solutions [N, 9, 9] (else None).

    One puzzle per line, followed by a comma and its solution or not; a first line of names
    (``quizzes,solutions``) is a header; empty lines and lines starting with ``#``
    are skipped. A solution must be complete and agree with its puzzle.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "two.txt"
    >>> _ = file.write_text("." * 81 + "\\n" + "1" + "." * 80)
    >>> puzzles, solutions = read_puzzles(file)
    >>> puzzles.shape, solutions
    ((2, 9, 9), None)
    """
    path = Path(path)
    opener = OPENERS.get(path.suffix, open)
    try:
        with opener(path, "rt", encoding="ascii") as file:
            lines = file.read().splitlines()
    except UnicodeDecodeError:
        raise PuzzleError(f"{path}: not a text file of puzzles (one per line, optionally .gz or .xz)") from None
    except (gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError) as error:
        raise PuzzleError(f"{path}: damaged archive: {error}") from None
    puzzles: list[np.ndarray] = []
    answers: list[np.ndarray] = []
    for number, line in enumerate(lines, start=1):
        fields = line.strip().split(",")
        if fields == [""] or line.startswith("#") or (number == 1 and _is_header(fields)):
            continue
        try:
            puzzle, answer = _parse_line(fields)
            if puzzles and (answer is None) != (not answers):
                raise PuzzleError("some lines have a solution and others do not: give all or none")
        except PuzzleError as error:
            raise PuzzleError(f"{path}, line {number}: {error}") from None
        puzzles.append(puzzle)
        if answer is not None:
            answers.append(answer)
    if not puzzles:
        raise PuzzleError(f"{path}: no puzzles in this file: it needs one line of 81 characters per puzzle")
    return np.stack(puzzles), np.stack(answers) if answers else None


def _is_header(fields: list[str]) -> bool:
    return all(field.strip().replace("_", "").isalpha() for field in fields)


def _parse_line(fields: list[str]) -> tuple[np.ndarray, np.ndarray | None]:
    if len(fields) > 2:
        raise PuzzleError(f"{len(fields)} comma-separated fields: expected `puzzle` or `puzzle,solution`")
    puzzle = parse_grid(fields[0].strip())
    if len(fields) == 1:
        return puzzle, None
    answer = parse_grid(fields[1].strip())
    if (answer == 0).any():
        raise PuzzleError(f"the solution has {int((answer == 0).sum())} empty cells: it must have none")
    wrong = np.argwhere((puzzle > 0) & (puzzle != answer))
    if len(wrong):
        row, column = wrong[0]
        raise PuzzleError(
            f"row {row + 1}, column {column + 1} is {puzzle[row, column]} in the puzzle "
            f"but {answer[row, column]} in its solution"
        )
    return puzzle, answer
