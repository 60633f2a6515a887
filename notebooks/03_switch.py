# %% [markdown]
# # 3 · The switch: the part of a block that learns
#
# Four neighbours, each a vector of $m$ feature maps, go through one small residual network, the **Quaternary
# Switch Unit** (QSU). All groups of a layer share the same unit.

# %% alt="Quaternary Switch Unit: i1 to i4 pass Z, RMSNorm, GELU, W and × h; added to that is i1 to i4 times σ(s)."
# %matplotlib inline
import matplotlib.pyplot as plt
import numpy as np

from mse_ref import init_unit, switch_unit
from mse_ref.draw import draw_switch
from mse_ref.handmade import linear_unit, permutation_unit
from mse_ref.switch import H, gelu, normalise, sigmoid, switch

rng = np.random.default_rng(0)
draw_switch()

# %% [markdown]
# ## The equations
#
# $$\begin{aligned}
# \mathbf i &= [\mathbf i_1, \mathbf i_2, \mathbf i_3, \mathbf i_4] \in \mathbb R^{4m} \\
# \mathbf g &= \mathrm{GELU}(\mathrm{RMSNorm}(Z\,\mathbf i)) \in \mathbb R^{8m} \\
# \mathbf c &= W \mathbf g + \mathbf b \\
# [\mathbf o_1, \dots, \mathbf o_4] &= \sigma(\mathbf s) \odot \mathbf i + h\, \mathbf c
# \end{aligned}$$
#
# $\mathbf s$ starts at $\sigma^{-1}(0.9)$ and is learned, $h = 0.25\sqrt{1 - 0.9^2} \approx 0.109$ stays. A fresh
# unit is close to the identity: it keeps nine tenths of its input. What it adds does not depend on the size of the
# input, because the norm divides that out, so the signal can neither vanish nor explode: many layers can be stacked.

# %%
m = 3
unit = init_unit(rng, 4 * m)
print({name: value.shape for name, value in unit.items()})
print("sigma(s) =", sigmoid(unit["s"])[0].round(3), " h =", round(H, 4))

# %% [markdown]
# ## The check: line by line
#
# Kernels are stored `[in, out]`, so $Z\,\mathbf i$ is `i @ Z`.

# %%
i = rng.normal(size=(5, 4 * m))  # five groups
g = gelu(normalise(i @ unit["Z"]))
c = g @ unit["W"] + unit["b"]
o = sigmoid(unit["s"]) * i + H * c
np.testing.assert_allclose(switch_unit(unit, i), o, rtol=1e-12)

# a switch layer is the same after cutting the line into groups of four
x = rng.normal(size=(2, 16, m))  # [batch, positions, features]
np.testing.assert_allclose(switch(unit, x), switch_unit(unit, x.reshape(2, 4, 4 * m)).reshape(2, 16, m))

# %% [markdown]
# ## Two readings of "RMSNorm"
#
# The paper normalises over the **features** of a group. The released code averages squares over the
# **positions** of the whole matrix instead. Both are here; `norm="feature"` is the default.

# %%
hidden = i @ unit["Z"]
assert np.allclose((normalise(hidden, "feature") ** 2).mean(axis=1), 1, atol=1e-4)  # each group
assert np.allclose((normalise(hidden, "position") ** 2).mean(axis=0), 1, atol=1e-4)  # each feature

# %% [markdown]
# With `"feature"` a group never looks at another group, which is what makes receptive fields exact: change one
# group, and only that group's output moves.

# %%
changed = i.copy()
changed[2] += 1
for norm in ("feature", "position"):
    moved = np.abs(switch_unit(unit, changed, norm=norm) - switch_unit(unit, i, norm=norm)).max(axis=1) > 1e-12
    print(f"{norm:9} groups that moved: {np.flatnonzero(moved)}")

# %% [markdown]
# ## A unit made by hand
#
# Can this unit be *any* linear map $P$, in spite of the norm and the GELU? Yes, exactly, for inputs of constant
# length. The key is that the GELU used here, $x\,\sigma(1.702x)$, satisfies
#
# $$\mathrm{GELU}(x) - \mathrm{GELU}(-x) = x .$$

# %% alt="GELU(x) is near 0 left of zero and near x right of it, -GELU(-x) the other way round; their sum is x."
t = np.linspace(-4, 4, 200)
fig, ax = plt.subplots(figsize=(5, 2.8))
ax.plot(t, gelu(t), color="#0072B2", label="GELU(x)")
ax.plot(t, -gelu(-t), color="#D55E00", ls="--", label="-GELU(-x)")
ax.plot(t, gelu(t) - gelu(-t), color="#009E73", ls=":", lw=3, label="their sum: x")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
assert np.allclose(gelu(t) - gelu(-t), t)

# %% [markdown]
# So choose $Z = [I; -I]$: both signs of the normalised input. Then $W = [P', -P']$ takes the difference, and
# $P' = (P - \sigma(s) I)\,\mathrm{rms}/h$ cancels the residual path and the normalisation. `permutation_unit` does
# it for a permutation of the four cells:

# %%
swap = permutation_unit([0, 2, 1, 3], feature_maps=4)
cells = np.eye(4)[[2, 0, 3, 1]]  # four cells, one-hot: 2 0 3 1
print(switch(swap, cells[None]).round(6)[0].argmax(axis=1), "<- cells 1 and 2 have changed places")
np.testing.assert_allclose(switch(swap, cells[None])[0], cells[[0, 2, 1, 3]], atol=1e-12)

# %% [markdown]
# Any matrix works, not only permutations:

# %%
P = rng.normal(size=(8, 8))
i = rng.normal(size=(6, 8))
i = 3 * i / np.linalg.norm(i, axis=1, keepdims=True)  # inputs of length 3
np.testing.assert_allclose(switch_unit(linear_unit(P, length=3.0), i), i @ P.T, atol=1e-9)

# %% [markdown]
# ## Summary
#
# * One QSU: $4m \to 8m \to 4m$ with RMSNorm, GELU and a gated residual; all groups of a layer share it.
# * `norm="feature"` is the paper's text, `norm="position"` the released code.
# * With weights written down by hand the unit is exactly any linear map on inputs of constant length.
#
# ## Exercises
#
# 1. How many parameters has one QSU for $m = 96$? And the whole network with three units in each of two blocks?
# 2. What does a fresh unit do to a signal after 20 layers? Measure the root mean square.
# 3. Write a unit that replaces each of four scalars by their mean.

# %% [markdown]
# <details><summary>Solutions</summary>
#
# 1. $2\cdot 4m\cdot 8m + 8m$ (Z, W, b, s): 590,592; six of them: 3.54 million.
# 2. It shrinks by nearly a tenth a layer, until what is added makes up for what is lost, at about 0.2: see below.
# 3. `linear_unit(np.full((4, 4), 0.25), length)`.
# </details>

# %%
units = sum(value.size for value in init_unit(rng, 4 * 96).values())
print("one unit:", units, " six units:", 6 * units)

x = rng.normal(size=(1, 64, 16))
for layer in range(1, 41):
    x = switch(init_unit(rng, 64), x)
    if layer in (1, 5, 10, 20, 40):
        print(f"rms after {layer} fresh layers: {np.sqrt((x**2).mean()):.2f}")

four = np.array([[3.0, 0.0, 4.0, 0.0]])
np.testing.assert_allclose(switch_unit(linear_unit(np.full((4, 4), 0.25), length=5.0), four), 1.75)
