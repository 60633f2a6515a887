# %% [markdown]
# # 5 · The whole network, twice
#
# Embedding, Z-order, Beneš blocks, Z-order back, readout. It exists twice: `mse_ref` (NumPy, written to be read)
# and `mse_fast` (PyTorch, written to be used). This notebook puts them side by side.

# %% alt="The letter F on 8×8 tokens is flattened, passes a Beneš block of five switch layers, comes out transposed."
# %matplotlib inline
import time

import numpy as np
import torch

from mse_fast import MatrixSE
from mse_fast.convert import from_reference
from mse_ref import count, handmade, init_matrix_se, matrix_se
from mse_ref.draw import draw_network

torch.set_num_threads(1)

draw_network(8)

# %% [markdown]
# ## The reference
#
# Parameters are a plain nested dict of arrays; `matrix_se` is a pure function. The same weights serve every size.

# %%
rng = np.random.default_rng(0)
params = init_matrix_se(rng, in_classes=12, out_classes=12, feature_maps=16, blocks=2)
for n in (2, 8, 32):
    tokens = rng.integers(0, 12, (1, n, n))
    print(f"{n:2}×{n:<2} -> logits {matrix_se(params, tokens).shape}")

# %% [markdown]
# The paper's network ($m = 96$, two blocks) has 3.5 million parameters, at every matrix size:

# %%
print(f"{count(init_matrix_se(rng, in_classes=12, out_classes=12)):,}")

# %% [markdown]
# ## The fast twin
#
# The same parameters in a `torch.nn.Module`. It never shuffles: it leaves the data in one place and mixes cells
# $2^j$ apart (notebook 2). In float64 both agree to rounding.

# %%
net = from_reference(params)
tokens = rng.integers(0, 12, (2, 32, 32))
with torch.no_grad():
    fast = net(torch.from_numpy(tokens)).numpy()
slow = matrix_se(params, tokens)
print("largest difference:", np.abs(fast - slow).max())
np.testing.assert_allclose(fast, slow, atol=1e-10)

# %% [markdown]
# Any H×W is fine: the module pads with token 0 to the next power of two and crops the result.

# %%
with torch.no_grad():
    print(net(torch.randint(12, (1, 5, 23))).shape)

# %% [markdown]
# ## How the cost grows
#
# $2k-1$ switch layers of equal cost: $O(n^2 \log n)$. Time per cell grows with the number of layers alone,
# once the matrix is so large that starting an operation costs little beside it.

# %%
small = MatrixSE(in_classes=12, out_classes=12, feature_maps=16, blocks=1).eval()
with torch.no_grad():
    for n in (32, 64, 128, 256):
        tokens = torch.randint(12, (1, n, n))
        times = []
        for _ in range(5):
            start = time.perf_counter()
            small(tokens)
            times.append(time.perf_counter() - start)
        took = min(times)  # the best of five: what disturbs a measurement only ever adds time
        per_cell = 1e9 * took / n**2
        layers = 2 * (n.bit_length() - 1) - 1
        print(f"n = {n:3}: {1e3 * took:7.1f} ms, {per_cell:6.0f} ns per cell, {per_cell / layers:5.0f} ns per layer")

# %% [markdown]
# ## Weights without training
#
# With the hand-made switch units of notebook 3, a whole network can be written down. Swap row and column bit in
# each digit: `forward` = identity, `reverse` = `last` = swap of cells 1 and 2. That is a matrix transpose, **exact at
# every size**, and it shows that the architecture can represent an algorithm, not only a function at one size.

# %%
transpose = handmade.transpose(12)
tokens = rng.integers(0, 12, (1, 64, 64))
answer = matrix_se(transpose, tokens).argmax(-1)
assert (answer == tokens.transpose(0, 2, 1)).all()

net = from_reference(transpose).float()
with torch.no_grad():
    for n in (4, 64, 256):
        tokens = torch.randint(12, (1, n, n))
        right = (net(tokens).argmax(-1) == tokens.mT).float().mean()
        print(f"{n:3}×{n:<3} {right:.0%} of the cells right, with weights made for no size in particular")
        assert right == 1

# %% [markdown]
# ## Summary
#
# * `matrix_se(params, tokens)` is the definition, `MatrixSE` its fast twin; both share their parameters.
# * Cost $O(n^2 \log n)$, parameters independent of $n$.
# * A transpose of every size can be written down by hand; the next notebook learns it from examples.
#
# ## Exercises
#
# 1. Turn a full square by 90° with hand-made weights. What happens to a rectangle in the corner, and why?
# 2. Does the network with random weights commute with transposing its input? Why (not)?
# 3. Make the hand-made transpose a *double* transpose by using two blocks.

# %% [markdown]
# <details><summary>Solutions</summary>
#
# 1. `handmade.rotate90`: the whole padded square turns, so the rectangle ends in another corner. Learning to turn a
#    rectangle in place needs its side lengths, which is why two blocks help there.
# 2. No: the unit treats its four inputs differently.
# 3. Put the block in twice: the identity comes out.
# </details>

# %%
padded = np.zeros((1, 4, 4), dtype=int)
padded[0, :2, :3] = [[1, 2, 3], [4, 5, 6]]
print(matrix_se(handmade.rotate90(7), padded).argmax(-1)[0])

twice = {**transpose, "blocks": transpose["blocks"] * 2}
tokens = rng.integers(0, 12, (1, 16, 16))
assert (matrix_se(twice, tokens).argmax(-1) == tokens).all()
