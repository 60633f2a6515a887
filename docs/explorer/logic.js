/* The wiring of a Matrix Shuffle-Exchange network, as plain functions on arrays.
 *
 * Every permutation is a list of gather indices: y[p] = x[perm[p]]. Addresses have k base-4 digits.
 * A network for n = 2^k has 2k-1 switch layers with 2k-2 shuffles in between, hence 4k-2 states:
 *
 *   state 0   1       2        3       4        ...   4k-3
 *         |   |       |        |       |               |
 *       input switch  shuffle  switch  shuffle  ...  switch
 *
 * Names follow the Python package mse_ref, which tests/test_explorer.py holds against this file.
 */
(function (root) {
  "use strict";

  const range = (length) => Array.from({ length }, (_, i) => i);

  function digitsOf(n) {
    const k = Math.round(Math.log2(n));
    if (n < 2 || 2 ** k !== n) throw new Error(`n must be a power of two, 2 or more; got ${n}`);
    return k;
  }

  /* Slot p of the sequence reads raster cell zorder(n)[p]: even bits of p are the column, odd bits the row. */
  function zorder(n) {
    const k = digitsOf(n);
    return range(n * n).map((p) => {
      let row = 0;
      let column = 0;
      for (let j = 0; j < k; j++) {
        column |= ((p >> (2 * j)) & 1) << j;
        row |= ((p >> (2 * j + 1)) & 1) << j;
      }
      return row * n + column;
    });
  }

  function inverse(perm) {
    const undo = new Array(perm.length);
    perm.forEach((source, slot) => { undo[source] = slot; });
    return undo;
  }

  /* Rotate the base-4 digits of an address right by `steps` (left when negative). */
  function rotateAddress(p, k, steps) {
    const shift = 2 * (((steps % k) + k) % k);
    const low = p & ((1 << shift) - 1);
    return (p >> shift) | (low << (2 * k - shift));
  }

  const qrotate = (k, steps = 1) => range(4 ** k).map((p) => rotateAddress(p, k, steps));

  /* The switch layers of one Benes block: the unit each uses, and the rotation that follows it. */
  function schedule(k) {
    return [
      ...Array(k - 1).fill({ unit: "forward", steps: 1 }),
      ...Array(k - 1).fill({ unit: "reverse", steps: -1 }),
      { unit: "last", steps: 0 },
    ];
  }

  const states = (k) => 4 * k - 2;

  /* How far all shuffles before a state have rotated the addresses. */
  function turned(k, state) {
    const shuffles = Math.floor(state / 2);
    return shuffles <= k - 1 ? shuffles : 2 * (k - 1) - shuffles;
  }

  /* The home of a slot: the original address whose place in the sequence it has taken over. */
  const home = (k, state, slot) => rotateAddress(slot, k, turned(k, state));
  const slotOf = (k, state, address) => rotateAddress(address, k, -turned(k, state));

  /* The digit of the original address that the switch layer entering `state` mixes (odd states only). */
  const digitTouched = (k, state) => (k - (turned(k, state) % k)) % k;

  /* Slots one state earlier that a set of slots depends on. */
  function stepBack(k, state, slots) {
    const out = new Set();
    if (state % 2) for (const p of slots) for (let i = 0; i < 4; i++) out.add(4 * (p >> 2) + i);
    else for (const p of slots) out.add(rotateAddress(p, k, schedule(k)[state / 2 - 1].steps));
    return out;
  }

  /* Slots one state later that depend on a set of slots. */
  function stepForward(k, state, slots) {
    const out = new Set();
    if (state % 2 === 0) for (const p of slots) for (let i = 0; i < 4; i++) out.add(4 * (p >> 2) + i);
    else for (const p of slots) out.add(rotateAddress(p, k, -schedule(k)[(state - 1) / 2].steps));
    return out;
  }

  /* All slots, state by state, on a path through one slot: back to the inputs and on to the outputs. */
  function cone(k, state, slot) {
    const at = new Array(states(k));
    at[state] = new Set([slot]);
    for (let s = state; s > 0; s--) at[s - 1] = stepBack(k, s, at[s]);
    for (let s = state; s < states(k) - 1; s++) at[s + 1] = stepForward(k, s, at[s]);
    return at;
  }

  /* Split edges of an even-degree bipartite multigraph in halves, so that every node keeps half of its edges. */
  function eulerSplit(edges, left, right) {
    const pairUp = (side) => {
      const open = new Map();
      const mate = new Map();
      for (const e of edges) {
        const node = side[e];
        if (open.has(node)) {
          mate.set(e, open.get(node));
          mate.set(open.get(node), e);
          open.delete(node);
        } else open.set(node, e);
      }
      return mate;
    };
    const byLeft = pairUp(left);
    const byRight = pairUp(right);
    const halves = [[], []];
    const done = new Set();
    for (const start of edges) {
      let e = start;
      while (!done.has(e)) { // around a cycle: every second edge goes to the same half
        const f = byLeft.get(e);
        done.add(e).add(f);
        halves[0].push(e);
        halves[1].push(f);
        e = byRight.get(f);
      }
    }
    return halves;
  }

  /* settings[layer][slot]: the slot each slot reads in that switch layer, so that item permutation[p] ends in p. */
  function route(permutation) {
    const length = permutation.length;
    const k = Math.round(Math.log2(length) / 2);
    if (4 ** k !== length || k < 1) throw new Error(`a permutation of 4, 16, 64, ... items is needed; got ${length}`);
    checkPermutation(permutation);
    const settings = range(2 * k - 1).map(() => new Array(length));
    const set = (layer, source, target) => {
      settings[layer][slotOf(k, 2 * layer, target)] = slotOf(k, 2 * layer, source);
    };
    const replace = (address, digit, value) => (address & ~(3 << (2 * digit))) | (value << (2 * digit));
    const items = range(length);
    const head = permutation.slice(); // where item i (named by its goal) is on the way in
    const tail = items.slice(); // where it must be on the way out
    for (let layer = 0; layer < k - 1; layer++) {
      const digit = digitTouched(k, 2 * layer + 1);
      const left = head.map((a) => replace(a, digit, 0));
      const right = tail.map((a) => replace(a, digit, 0));
      const [even, odd] = eulerSplit(items, left, right);
      const quarters = [...eulerSplit(even, left, right), ...eulerSplit(odd, left, right)];
      quarters.forEach((quarter, colour) => {
        for (const e of quarter) {
          const inward = replace(head[e], digit, colour);
          const outward = replace(tail[e], digit, colour);
          set(layer, head[e], inward);
          set(2 * k - 2 - layer, outward, tail[e]);
          head[e] = inward;
          tail[e] = outward;
        }
      });
    }
    for (const e of items) set(k - 1, head[e], tail[e]); // one digit is left, and the centre settles it
    return settings;
  }

  /* The items in every slot, state by state. */
  function carry(settings, items) {
    const k = Math.round(Math.log2(items.length) / 2);
    const all = [items.slice()];
    schedule(k).forEach((layer, i) => {
      all.push(settings[i].map((source) => all[all.length - 1][source]));
      if (layer.steps) {
        const gather = qrotate(k, layer.steps);
        all.push(gather.map((source) => all[all.length - 1][source]));
      }
    });
    return all;
  }

  const straight = (k) => range(2 * k - 1).map(() => range(4 ** k));

  function checkPermutation(permutation) {
    const seen = new Set();
    for (const value of permutation) {
      if (!Number.isInteger(value) || value < 0 || value >= permutation.length) {
        throw new Error(`entries are whole numbers from 0 to ${permutation.length - 1}; got ${value}`);
      }
      if (seen.has(value)) throw new Error(`each cell is used once, but ${value} comes twice`);
      seen.add(value);
    }
  }

  /* A typed list of raster cells: output cell i receives input cell list[i]. */
  function parsePermutation(text, n) {
    const words = text.split(/[\s,;[\]()]+/).filter((word) => word);
    const values = words.map((word) => {
      if (!/^\d+$/.test(word)) throw new Error(`only whole numbers are understood; got "${word.slice(0, 20)}"`);
      return Number(word);
    });
    if (values.length !== n * n) {
      throw new Error(`a ${n}×${n} matrix needs ${n * n} numbers, 0 to ${n * n - 1}; got ${values.length}`);
    }
    checkPermutation(values);
    return values;
  }

  /* Permutations with a name, over raster cells (row r, column c): the cell that (r, c) receives. */
  const named = {
    none: (r, c) => [r, c],
    transpose: (r, c) => [c, r],
    "rotate left": (r, c, n) => [c, n - 1 - r],
    "flip sideways": (r, c, n) => [r, n - 1 - c],
    "turn around": (r, c, n) => [n - 1 - r, n - 1 - c],
    "roll right": (r, c, n) => [r, (c + n - 1) % n],
    "reverse bits": (r, c, n) => [reverseBits(r, n), reverseBits(c, n)],
  };

  function reverseBits(value, n) {
    let out = 0;
    for (let bit = 1; bit < n; bit *= 2) out = out * 2 + (value & bit ? 1 : 0);
    return out;
  }

  function namedPermutation(name, n, random = Math.random) {
    if (name === "random") {
      const out = range(n * n);
      for (let i = out.length - 1; i > 0; i--) {
        const j = Math.floor(random() * (i + 1));
        [out[i], out[j]] = [out[j], out[i]];
      }
      return out;
    }
    return range(n * n).map((i) => {
      const [r, c] = named[name](Math.floor(i / n), i % n, n);
      return r * n + c;
    });
  }

  /* The same permutation over Z-order slots. */
  function toSlots(rasterPermutation, n) {
    const order = zorder(n);
    const slot = inverse(order);
    return order.map((cell) => slot[rasterPermutation[cell]]);
  }

  const api = {
    carry, cone, digitTouched, digitsOf, home, inverse, named, namedPermutation, parsePermutation, qrotate,
    route, schedule, slotOf, states, straight, toSlots, turned, zorder,
  };
  if (typeof module !== "undefined" && module.exports) module.exports = api;
  else root.MSE = api;
})(typeof self !== "undefined" ? self : this);
