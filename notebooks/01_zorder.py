# %% [markdown]
# # 1 · Z-order: a matrix as a line
#
# A Matrix Shuffle-Exchange network works on a *sequence*. This notebook is about the first step: reading an
# $n\times n$ matrix, $n = 2^k$, in an order that keeps neighbours together at every scale.
#
# **In short:** write row and column in binary, interleave the bits, and you have the position on the line.

# %%
# %matplotlib inline
import numpy as np

from mse_ref import flatten, inverse, unflatten, zorder
from mse_ref.draw import draw_zorder

# %% [markdown]
# ## The equation
#
# With row bits $r_j$ and column bits $c_j$, the position (slot) of cell $(r, c)$ is
#
# $$p = \sum_{j=0}^{k-1} (2 r_j + c_j)\, 4^j .$$
#
# In base 4, digit $j$ of the position *is* the pair (row bit $j$, column bit $j$): 0 = top-left,
# 1 = top-right, 2 = bottom-left, 3 = bottom-right. The highest digit says which quadrant, the next one which
# quadrant of it, and so on: a depth-first walk through a quadtree.

# %% alt="An 8×8 grid: the Z-order line runs through its four coloured quadrants, slots numbered 0 to 63 along it."
draw_zorder(8)

# %% [markdown]
# ## The code
#
# All permutations in this project are *gather indices*: `y = x[perm]`, slot `p` reads from place `perm[p]`.
# `zorder(n)[p]` is the raster cell (counted row by row) that slot `p` reads.

# %%
zorder(4)

# %%
matrix = np.arange(16).reshape(4, 4)
line = matrix.ravel()[zorder(4)]
print(matrix)
print(line)

# %% [markdown]
# ## The check
#
# The package builds the order by transposing a 2k-dimensional cube of bits. Spelling out the equation, bit by
# bit, must give the same.

# %%
n, k = 16, 4
for slot, cell in enumerate(zorder(n)):
    row, column = divmod(int(cell), n)
    spelled = sum((2 * (row >> j & 1) + (column >> j & 1)) * 4**j for j in range(k))
    assert spelled == slot
print("all", n * n, "positions agree")

# %% [markdown]
# And going back is the inverse permutation; `flatten` and `unflatten` do both on batches with features.

# %%
x = np.random.default_rng(0).normal(size=(2, 8, 8, 3))  # [batch, n, n, features]
assert flatten(x).shape == (2, 64, 3)
assert (unflatten(flatten(x)) == x).all()
assert (zorder(8)[inverse(zorder(8))] == np.arange(64)).all()

# %% [markdown]
# ## Why not just row by row?
#
# A small matrix in the top-left corner of a larger one keeps **all its positions** in Z-order: slots
# $0 \dots m^2-1$ of an $n \times n$ matrix are the $m \times m$ corner, whatever $n$ is. Row by row, cell (1, 0)
# moves from position $m$ to position $n$. Weights learned on small matrices meet the same neighbours on large
# ones; the paper's ablation shows that generalization depends on it.

# %%
corner = np.arange(4).reshape(2, 2)
for n in (4, 8, 64):
    rows, columns = np.divmod(zorder(n)[:4], n)
    print(f"n = {n:2}: the first four slots are cells", list(zip(rows.tolist(), columns.tolist(), strict=True)))
    assert rows.max() < 2 and columns.max() < 2

# %% [markdown]
# Every group of four neighbours on the line is a 2×2 block of the matrix, every group of 16 a 4×4 block, …

# %%
n = 32
for size in (2, 4, 8, 16):
    blocks = zorder(n).reshape(-1, size * size)  # [blocks, cells of one block]
    rows, columns = np.divmod(blocks, n)
    assert (np.ptp(rows, axis=1) == size - 1).all() and (np.ptp(columns, axis=1) == size - 1).all()
print("aligned blocks of every size are contiguous")

# %% [markdown]
# ## Summary
#
# * Position = row and column bits interleaved; digit $j$ in base 4 is (row bit $j$, column bit $j$).
# * Aligned $2^j \times 2^j$ blocks are contiguous, and small matrices keep their positions inside large ones.
# * `zorder(n)` are gather indices, `inverse` undoes them, `flatten`/`unflatten` apply them.
#
# ## Exercises
#
# 1. What does transposing the matrix do to the digits of a position?
# 2. How far apart on the line are horizontally adjacent cells on average? Compare with row-by-row order, then
#    do the same for vertically adjacent cells.
# 3. Which cells of an 8×8 matrix have the base-4 positions `000`, `111`, `222`, `333`?

# %% [markdown]
# <details><summary>Solutions</summary>
#
# 1. It swaps row and column bits, so in every digit 1 and 2 change places and 0 and 3 stay. See below.
# 2. See below: in Z-order one direction is twice as far as the other; row by row, $n$ times.
# 3. (0, 0), (0, 7), (7, 0), (7, 7): the four corners.
# </details>

# %%
swap = np.array([0, 2, 1, 3])
digits = np.arange(64)[:, None] // 4 ** np.arange(3) % 4  # [slot, digit]
swapped = (swap[digits] * 4 ** np.arange(3)).sum(axis=1)
line = np.arange(64).reshape(8, 8).ravel()[zorder(8)]
line_of_transpose = np.arange(64).reshape(8, 8).T.ravel()[zorder(8)]
assert (line[swapped] == line_of_transpose).all()

place = inverse(zorder(32)).reshape(32, 32)
raster = np.arange(1024).reshape(32, 32)
for name, order in (("Z-order", place), ("row by row", raster)):
    sideways, down = (np.abs(np.diff(order, axis=axis)).mean() for axis in (1, 0))
    print(f"{name:10}  sideways {sideways:5.1f}   down {down:5.1f}")
