"""Matrix tasks: transpose, rotation, XOR and squaring (paper: Inferring matrix algorithms).

Conventions of the authors' released code, with the paper's alphabet 1-11 and sides up to and including n.
"""

import numpy as np

LETTERS = 11  # tokens 1 … 11; 0 is padding
XOR_FILL = 0.7  # each possible row and column of an xor instance is there with this probability


def sample_rectangle(n: int, rng: np.random.Generator) -> np.ndarray:
    """A random rectangle of letters 1-11 in the top-left corner of [n, n].

    >>> sample_rectangle(4, np.random.default_rng(1))
    array([[ 1,  2, 10, 11],
           [ 3,  4, 10,  5],
           [ 4, 10,  3,  5],
           [ 0,  0,  0,  0]])
    """
    rows, columns = _side(n, rng), _side(n, rng)
    return _pad(rng.integers(1, LETTERS + 1, (rows, columns)), n)


def label_transpose(tokens: np.ndarray) -> np.ndarray:
    """The transposed rectangle; padding stays at the bottom and right by itself."""
    return tokens.T.copy()


def label_rotate90(tokens: np.ndarray) -> np.ndarray:
    """The rectangle without its padding, turned counter-clockwise.

    >>> label_rotate90(np.array([[1, 2, 0], [3, 4, 0], [0, 0, 0]]))
    array([[2, 4, 0],
           [1, 3, 0],
           [0, 0, 0]])
    """
    return _pad(np.rot90(_crop(tokens)), len(tokens))


def sample_xor(n: int, rng: np.random.Generator) -> np.ndarray:
    """Two binary matrices side by side, ``[A | separator | B]``: separator 1, bits 2 and 3.

    Rows ~ Binomial(n, .7), columns of each ~ Binomial(⌊(n-1)/2⌋, .7), at least one of both.
    """
    rows = max(1, rng.binomial(n, XOR_FILL))
    columns = max(1, rng.binomial((n - 1) // 2, XOR_FILL))
    a, b = rng.integers(2, 4, (2, rows, columns))
    return _pad(np.hstack([a, np.ones((rows, 1), np.int64), b]), n)


def label_xor(tokens: np.ndarray) -> np.ndarray:
    """1 where the two matrices agree, 2 where they differ; as wide as one of them.

    >>> label_xor(np.array([[2, 1, 3], [3, 1, 3], [0, 0, 0]]))
    array([[2, 0, 0],
           [1, 0, 0],
           [0, 0, 0]])
    """
    instance = _crop(tokens)  # [rows, 2 columns + 1]
    columns = instance.shape[1] // 2
    return _pad(1 + (instance[:, :columns] ^ instance[:, columns + 1 :]), len(tokens))


def sample_squaring(n: int, rng: np.random.Generator) -> np.ndarray:
    """A random square of bits, stored as bit + 1."""
    side = _side(n, rng)
    return _pad(rng.integers(1, 3, (side, side)), n)


def label_squaring(tokens: np.ndarray) -> np.ndarray:
    """The matrix product with itself modulo 2, stored as bit + 1.

    >>> label_squaring(np.array([[1, 2], [2, 2]]))  # [[0, 1], [1, 1]]² = [[1, 1], [1, 2]]
    array([[2, 2],
           [2, 1]])
    """
    bits = _crop(tokens) - 1
    return _pad(bits @ bits % 2 + 1, len(tokens))


def _side(n: int, rng: np.random.Generator) -> int:
    """A side from [lo, n], where a coin sets lo to 1 or n/2: small instances are seen, large ones prevail."""
    lo = rng.choice([1, max(1, n // 2)])
    return int(rng.integers(lo, n + 1))


def _crop(tokens: np.ndarray) -> np.ndarray:
    """The rectangle that holds every token other than padding."""
    rows, columns = np.nonzero(tokens)
    return tokens[: rows.max(initial=-1) + 1, : columns.max(initial=-1) + 1]


def _pad(instance: np.ndarray, n: int) -> np.ndarray:
    rows, columns = instance.shape
    return np.pad(instance, ((0, n - rows), (0, n - columns)))  # [rows, columns] -> [n, n]
