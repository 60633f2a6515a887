# %% [markdown]
# # 2 · The shuffle: new neighbours without learning anything
#
# A switch (next notebook) mixes four *neighbours*. Between two switch layers the line is rearranged, so that
# other elements become neighbours: the **quaternary shuffle**. It has no parameters.
#
# **In short:** rotate the base-4 digits of every address.

# %%
# %matplotlib inline
import numpy as np

from mse_ref import digits_touched, qrotate, rotate, schedule, zorder
from mse_ref.draw import draw_butterfly, draw_shuffle

# %% [markdown]
# ## The equation
#
# $$S[x] \leftarrow S[\mathrm{qrotate}(x, k)]$$
#
# where $x$ has $k$ base-4 digits and `qrotate` moves the lowest digit to the top:
# $(d_{k-1} \dots d_1 d_0) \mapsto (d_0\, d_{k-1} \dots d_1)$. Slot 01 reads what slot 10 held.

# %%
perm = qrotate(2)
for slot in (1, 2, 6, 11):
    print(f"slot {np.base_repr(slot, 4):>2} reads slot {np.base_repr(perm[slot], 4):>2}")

# %% [markdown]
# On the matrix this is a card trick: cut the rows into two halves and interleave them, then do the same with
# the columns (the paper's Figure 2).

# %% alt="Three 4×4 grids of base-4 slots: Z-order, then with row halves interleaved, then column halves too."
draw_shuffle(4)

# %% [markdown]
# ## The check
#
# Two independent constructions: digit rotation on the line, and interleaving halves of the matrix.

# %%
for n in (2, 4, 8, 16, 32):
    k = n.bit_length() - 1
    matrix = np.arange(n * n).reshape(n, n)
    halves = np.arange(n).reshape(2, n // 2).T.ravel()  # 0, n/2, 1, n/2 + 1, ...
    interleaved = matrix[halves][:, halves]
    assert (interleaved.ravel()[zorder(n)] == matrix.ravel()[zorder(n)][qrotate(k)]).all()
print("rotating digits = interleaving halves")

# %% [markdown]
# Left undoes right, and $k$ rotations change nothing:

# %%
x = np.arange(4**3)
assert (x[qrotate(3)][qrotate(3, -1)] == x).all()
assert (x[qrotate(3)][qrotate(3)][qrotate(3)] == x).all()

# %% [markdown]
# ## Which digit is being mixed?
#
# A switch always mixes the four slots that differ in the **lowest** digit. Each shuffle brings another digit of
# the *original* address down there. A block shuffles right $k-1$ times, then left $k-1$ times:

# %%
for k in (2, 3, 4, 5):
    print(
        f"n = {2**k:2}:", [f"{layer.unit}/{digit}" for layer, digit in zip(schedule(k), digits_touched(k), strict=True)]
    )

# %% [markdown]
# The digits form a palindrome, $0, k-1, \dots, 2, 1, 2, \dots, k-1, 0$: a Beneš network of radix 4.
# And since digit $j$ is (row bit $j$, column bit $j$), a layer that mixes digit $j$ mixes the cells
# $\{r, r+2^j\} \times \{c, c+2^j\}$ of the original matrix: a 2×2 patch, dilated.

# %% alt="Three 8×8 grids, one per digit: four mixed cells a, b, c, d at the corners of a square of side 1, 2 and 4."
draw_butterfly(8)

# %% [markdown]
# So nobody has to move anything: one can leave the matrix where it is and mix ever more distant cells. That is
# how the fast backend works, and why it needs no gather at all.

# %%
k, n = 4, 16
address = np.arange(4**k)
for layer, digit in zip(schedule(k), digits_touched(k), strict=True):
    rows, columns = np.divmod(zorder(n)[address.reshape(-1, 4)], n)  # [groups, 4]
    assert (np.ptp(rows, axis=1) == 2**digit).all() and (np.ptp(columns, axis=1) == 2**digit).all()
    address = address[qrotate(k, layer.steps)] if layer.steps else address
print("every switch layer is a dilated 2×2 butterfly")

# %% [markdown]
# ## Summary
#
# * The shuffle rotates base-4 digits: gather indices `qrotate(k)`, inverse `qrotate(k, -1)`.
# * On the matrix it interleaves row halves and column halves.
# * Seen from the original matrix, layer after layer mixes digits $0, k-1, \dots, 1, \dots, k-1, 0$.
#
# ## Exercises
#
# 1. The 1D network rotates bits (`rotate`). Which card shuffle is `rotate(k)` on a deck of $2^k$ cards?
# 2. Show that one quaternary shuffle equals two binary ones.
# 3. After how many right shuffles of a 32×32 matrix is everything back in place?

# %% [markdown]
# <details><summary>Solutions</summary>
#
# 1. The perfect out-shuffle: cut in the middle, interleave, the first card stays on top. Eight of them restore
#    52 cards; here $k$ restore $2^k$.
# 2. Rotating by one base-4 digit is rotating by two bits.
# 3. After $k = 5$.
# </details>

# %%
deck = np.arange(8)
assert (deck[rotate(3)] == np.stack([deck[:4], deck[4:]], axis=1).ravel()).all()
for k in (1, 2, 3, 4):
    assert (qrotate(k) == rotate(2 * k, 2)).all()
