# %% [markdown]
# # 4 · The Beneš block: everyone can reach everyone
#
# Switches and shuffles alternate: $k-1$ times (switch, shuffle), $k-1$ times (switch, inverse shuffle), one last
# switch. That is a **Beneš network**, known from telephone exchanges, and it has two properties worth proving:
#
# 1. **Full receptive field:** after $k$ switch layers every position depends on every input.
# 2. **Rearrangeability:** *any* permutation of the $n^2$ inputs can be set up in the switches.

# %%
# %matplotlib inline
import matplotlib.pyplot as plt
import numpy as np

from mse_ref import (
    apply_route,
    digits_touched,
    field_size,
    init_matrix_se,
    qrotate,
    receptive_field,
    route,
    schedule,
    zorder,
)
from mse_ref.draw import draw_benes, draw_receptive_field, draw_route
from mse_ref.shuffle import shuffle
from mse_ref.switch import switch

rng = np.random.default_rng(0)
schedule(3)

# %% [markdown]
# ## The receptive field grows by one digit per layer
#
# A switch layer mixes positions that differ in one digit; shuffles only rename positions. So a feature depends
# exactly on the inputs that agree with it in every digit **not yet touched**. The digits come in the order
# $0, k-1, \dots, 2 \mid 1, 2, \dots, k-1 \mid 0$, hence
#
# $$\text{inputs seen after } \ell \text{ switch layers} = 4^{\min(\ell,\, k)} .$$

# %% alt="The 8×8 inputs seen by one cell after layers 1, 2 and 3: a 2×2 patch, four such patches, all 64."
draw_receptive_field(8, (2, 5))

# %%
for k in (2, 3, 4, 5):
    print(f"n = {2**k:2}: digits {digits_touched(k)}, inputs seen {[field_size(k, layer) for layer in range(2 * k)]}")

# %% [markdown]
# **A correction to the paper.** Its appendix says that every input takes part "even after the first
# Shuffle-Exchange block". That block has $k-1$ switch layers, digit 1 is still untouched, and each feature sees
# exactly $n^2/4$ inputs; the first layer of the second half completes the field.

# %%
for k in (2, 3, 4):
    assert (receptive_field(k, k - 1).sum(axis=1) == 4**k // 4).all()  # after the first k-1 layers: a quarter
    assert receptive_field(k, k).all()  # after k layers: everything

# %% [markdown]
# The whole block with every path to one output (the paper's appendix figure), for 4×4:

# %% alt="A Beneš block for 4×4: three layers of four switches; highlighted paths lead from all inputs to output 6."
draw_benes(4, output=6)

# %% [markdown]
# ## The check on the real network
#
# The graph says what *can* influence what. Does it with real weights? Disturb one input of a random block and see
# which outputs move. (One pass through the first $k-1$ layers: cut the block short by hand.)

# %%
k, m = 3, 4
block = init_matrix_se(rng, in_classes=2, out_classes=2, feature_maps=m, blocks=1)["blocks"][0]
x = rng.normal(size=(1, 4**k, m))
y = x.copy()
y[0, 37] += 1.0  # disturb input 37
for number, layer in enumerate(schedule(k), start=1):
    x, y = (switch(block[layer.unit], signal) for signal in (x, y))
    moved = np.abs(x - y)[0].max(axis=1) > 1e-9
    assert (moved == receptive_field(k, number)[:, 37]).all()
    print(f"after switch layer {number}: {moved.sum():2} of {4**k} features moved, as the graph says")
    x, y = (shuffle(signal, layer.steps) for signal in (x, y)) if layer.steps else (x, y)

# %% [markdown]
# ## Routing: any permutation
#
# Let every switch merely permute its four values. `route(p)` finds a setting of all switches such that
# `apply_route(route(p), x) == x[p]`. How? The first and the last layer touch the same digit, and between them lie
# four smaller networks. Give each element a "colour" (which of the four it travels through) so that all colours
# differ in every first and every last switch: an edge colouring of a 4-regular bipartite graph. It always exists;
# halving the edges along Euler cycles finds it. Then do the same inside.

# %% alt="Sixteen items drawn as coloured lines through three layers of four switches to their permuted places."
draw_route(rng.permutation(16))

# %% [markdown]
# Now a picture. We scramble it with a random permutation and let the *network's own wiring* put it back.

# %% alt="A smiling face of 32×32 cells, the same cells scrambled into noise, and the face again, routed back."
n, k = 32, 5
r, c = np.mgrid[:n, :n] / (n - 1) - 0.5
picture = np.where(np.hypot(r, c) < 0.42, 0.75, 0.1)
picture[np.hypot(r + 0.12, np.abs(c) - 0.16) < 0.07] = 0.0
picture[(np.abs(np.hypot(r - 0.02, c) - 0.26) < 0.035) & (r > 0.1)] = 0.0

scramble = rng.permutation(n * n)
line = picture.ravel()[zorder(n)]
scrambled = line[scramble]
settings = route(np.argsort(scramble))  # one setting for each of the 9 layers × 256 switches
restored = apply_route(settings, scrambled)
assert (restored == line).all()


def to_matrix(sequence):
    out = np.empty(n * n)
    out[zorder(n)] = sequence
    return out.reshape(n, n)


fig, axes = plt.subplots(1, 3, figsize=(8, 2.9))
for ax, title, sequence in zip(axes, ("picture", "scrambled", "routed back"), (line, scrambled, restored), strict=True):
    ax.imshow(to_matrix(sequence), cmap="cividis")
    ax.set(title=title, xticks=[], yticks=[])

# %% [markdown]
# Layer by layer, order appears only in the second half: the first half spreads, the second half gathers.

# %% alt="The picture after each of nine layers: noise through seven, a speckled face after the eighth, then the face."
fig, axes = plt.subplots(1, 2 * k - 1, figsize=(13, 1.9))
state = scrambled
turned = 0
for ax, layer, setting in zip(axes, schedule(k), settings, strict=True):
    state = np.take_along_axis(state.reshape(-1, 4), setting, axis=1).ravel()
    in_place = np.empty_like(state)
    in_place[qrotate(k, turned)] = state  # undo the shuffles so far, to see the cells where they belong
    ax.imshow(to_matrix(in_place), cmap="cividis")
    ax.set(xticks=[], yticks=[])
    ax.set_title(layer.unit, fontsize=9)
    if layer.steps:
        state = state[qrotate(k, layer.steps)]
        turned += layer.steps
assert (state == line).all()

# %% [markdown]
# ## Summary
#
# * Receptive field: $4^{\min(\ell, k)}$ inputs after $\ell$ switch layers; full at layer $k$, not before.
# * Rearrangeable: every permutation has a setting, found in $O(L \log L)$ by Euler splits.
# * Both hold for every $n = 2^k$, with the *same three units* per block.
#
# ## Exercises
#
# 1. How many settings has a block for 4×4, and how many permutations are there? What follows?
# 2. Route the identity. Must all switches be straight?
# 3. Why is there a `last` layer? Which permutations of 2×2 blocks would be lost without it?

# %% [markdown]
# <details><summary>Solutions</summary>
#
# 1. $24^{12} \approx 3.7\cdot10^{16}$ settings for $16! \approx 2.1\cdot10^{13}$ permutations: many
#    routes for each.
# 2. No: any colouring will do, and whatever the first layer does, the last one undoes (see below).
# 3. Without `last` only the first layer touches digit 0, so each of the four cells of a 2×2 block must end with a
#    digit 0 of its own: no permutation that sends two of them to the same place in their final blocks (both to the
#    top left, say) can be routed. The 1D network of the paper has no such layer.
# </details>

# %%
settings = route(np.arange(64))
straight = (settings == np.arange(4)).all(axis=-1).mean(axis=1)
print("share of straight switches, layer by layer:", straight.round(2))
assert (apply_route(settings, np.arange(64)) == np.arange(64)).all()
