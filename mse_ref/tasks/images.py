"""CIFAR-10 records and what the image model sees of them (paper: CIFAR-10 image classification).

A record of the official binary archive is one byte of label and 3·32·32 bytes of colour planes (red, green,
blue), each row by row; the python archive has the same planes as rows of an array.
"""

import numpy as np

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
SIDE, PLANES = 32, 3
RECORD = 1 + PLANES * SIDE * SIDE

# Mean and standard deviation of the training images' channels, of values from 0 to 1.
MEAN = np.array([0.4914, 0.4822, 0.4465])
STD = np.array([0.2470, 0.2435, 0.2616])


def decode_planes(rows: np.ndarray) -> np.ndarray:
    """Pictures [N, 32, 32, 3] of rows of colour planes [N, 3072].

    >>> decode_planes(np.arange(3072)[None])[0, 0, :2]
    array([[   0, 1024, 2048],
           [   1, 1025, 2049]])
    """
    return rows.reshape(-1, PLANES, SIDE, SIDE).transpose(0, 2, 3, 1)


def decode_records(content: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Pictures [N, 32, 32, 3] and labels [N] of a file of the binary archive.

    >>> pictures, labels = decode_records(bytes([7]) + bytes(3072))
    >>> pictures.shape, labels.tolist()
    ((1, 32, 32, 3), [7])
    """
    if not content or len(content) % RECORD:
        raise ValueError(f"a file of {len(content)} bytes is cut short: records have {RECORD} bytes each")
    records = np.frombuffer(content, dtype=np.uint8).reshape(-1, RECORD)
    return decode_planes(records[:, 1:]), records[:, 0].astype(np.int64)


def standardise(pictures: np.ndarray) -> np.ndarray:
    """Bytes [..., 3] to features of about zero mean and unit variance."""
    return (pictures / 255.0 - MEAN) / STD


def patches(pictures: np.ndarray, side: int) -> np.ndarray:
    """Every patch of side×side cells becomes one cell: [H, W, C] -> [H/side, W/side, side·side·C].

    >>> patches(np.arange(16).reshape(4, 4, 1), 2)[0, 1]
    array([2, 3, 6, 7])
    """
    height, width, channels = pictures.shape
    split = pictures.reshape(height // side, side, width // side, side, channels)
    return split.transpose(0, 2, 1, 3, 4).reshape(height // side, width // side, side * side * channels)
