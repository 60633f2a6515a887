/* A Matrix Shuffle-Exchange network run in the browser: embed, Z-order, Benes blocks, readout.
 *
 * Weights come as one base64 string of little-endian floats, cut up by a list of names, shapes and widths:
 * half precision where that loses nothing, else single. Kernels are [in, out], row by row, as in the Python
 * reference. Sums are kept in double precision.
 */
(function (root) {
  "use strict";
  const wiring = typeof module !== "undefined" && module.exports ? require("./logic.js") : root.MSE;
  const H = 0.25 * Math.sqrt(1 - 0.9 ** 2);
  const EPS = 1e-6;
  const sigmoid = (x) => 1 / (1 + Math.exp(-x));
  const gelu = (x) => x * sigmoid(1.702 * x);

  /* The number that 16 bits stand for: sign, five of exponent, ten of fraction (no browser's getFloat16 needed). */
  function half(bits) {
    const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
    const size = exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -24 * fraction;
    return bits >> 15 ? -size : size;
  }

  /* {config, shapes: [[name, shape, 16 or 32], ...], data} -> {config, weights: {name: Float32Array}} */
  function load(stored) {
    const text = atob(stored.data);
    const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    const weights = {};
    let offset = 0;
    for (const [name, shape, bits] of stored.shapes) {
      const array = new Float32Array(shape.reduce((a, b) => a * b, 1));
      for (let i = 0; i < array.length; i++, offset += bits / 8) {
        array[i] = bits === 16 ? half(view.getUint16(offset, true)) : view.getFloat32(offset, true);
      }
      weights[name] = array;
    }
    if (offset !== bytes.length) throw new Error(`the weights hold ${bytes.length} bytes, their shapes ask for ${offset}`);
    return { config: stored.config, weights };
  }

  /* out = row @ kernel (+ bias), for a kernel [row.length, out.length]. */
  function multiply(row, kernel, bias, out) {
    const width = out.length;
    if (bias) out.set(bias);
    else out.fill(0);
    for (let a = 0; a < row.length; a++) {
      const value = row[a];
      if (value === 0) continue;
      const start = a * width;
      for (let j = 0; j < width; j++) out[j] += value * kernel[start + j];
    }
  }

  /* A switch layer: every four neighbours through the same unit. x is [L, m], changed in place. */
  function switchLayer(unit, x, m, norm) {
    const width = 4 * m;
    const groups = x.length / width;
    const hidden = Array.from({ length: groups }, (_, g) => {
      const row = new Float64Array(2 * width);
      multiply(x.subarray(g * width, (g + 1) * width), unit.Z, null, row);
      return row;
    });
    let scale = null;
    if (norm === "position") { // the released code: one scale per hidden feature, over all groups
      scale = new Float64Array(2 * width);
      for (const row of hidden) for (let j = 0; j < row.length; j++) scale[j] += row[j] * row[j];
      for (let j = 0; j < scale.length; j++) scale[j] = 1 / Math.sqrt(scale[j] / groups + EPS);
    }
    const change = new Float64Array(width);
    hidden.forEach((row, g) => {
      let own = 0; // the paper: one scale per group, over its features
      if (!scale) {
        for (let j = 0; j < row.length; j++) own += row[j] * row[j];
        own = 1 / Math.sqrt(own / row.length + EPS);
      }
      for (let j = 0; j < row.length; j++) row[j] = gelu(row[j] * (scale ? scale[j] : own));
      multiply(row, unit.W, unit.b, change);
      for (let j = 0; j < width; j++) x[g * width + j] = unit.gate[j] * x[g * width + j] + H * change[j];
    });
  }

  function shuffle(x, m, gather) {
    const out = new Float32Array(x.length);
    gather.forEach((source, slot) => out.set(x.subarray(source * m, (source + 1) * m), slot * m));
    return out;
  }

  function unitOf(net, block, name) {
    const at = (part) => net.weights[`blocks.${block}.${name}.${part}`];
    return { Z: at("Z"), W: at("W"), b: at("b"), gate: Float64Array.from(at("s"), sigmoid) };
  }

  function blocks(net, x, k) {
    const m = net.config.feature_maps;
    let state = x.slice();
    for (let block = 0; block < net.config.blocks; block++) {
      for (const { unit, steps } of wiring.schedule(k)) {
        switchLayer(unitOf(net, block, unit), state, m, net.config.norm);
        if (steps) state = shuffle(state, m, wiring.qrotate(k, steps));
      }
    }
    return state;
  }

  /* Logits of every cell, in reading order: Float32Array [n * n * classes]. */
  function readout(net, x, order, tokens) {
    const { feature_maps: m, out_classes: classes } = net.config;
    const logits = new Float32Array(order.length * classes);
    const head = new Float64Array(m);
    const row = new Float64Array(classes);
    order.forEach((cell, slot) => {
      let features = x.subarray(slot * m, (slot + 1) * m);
      if (net.weights["head.kernel"]) {
        multiply(features, net.weights["head.kernel"], net.weights["head.bias"], head);
        features = head.map(gelu);
      }
      multiply(features, net.weights["readout.kernel"], net.weights["readout.bias"], row);
      if (net.weights.skip) for (let c = 0; c < classes; c++) row[c] += net.weights.skip[tokens[cell] * classes + c];
      logits.set(row, cell * classes);
    });
    return logits;
  }

  /* tokens: n * n whole numbers in reading order. Yields the logits after each step (plain networks: one). */
  function* run(net, tokens, n, steps = 1) {
    const k = wiring.digitsOf(n);
    const { feature_maps: m, in_classes: classes } = net.config;
    const order = net.config.flatten === "raster" ? tokens.map((_, i) => i) : wiring.zorder(n);
    if (tokens.length !== n * n) throw new Error(`a ${n}×${n} matrix has ${n * n} cells; got ${tokens.length}`);
    const given = new Float32Array(n * n * m);
    order.forEach((cell, slot) => {
      const token = tokens[cell];
      if (!(token >= 0 && token < classes)) throw new Error(`tokens go from 0 to ${classes - 1}; got ${token}`);
      given.set(net.weights.embedding.subarray(token * m, (token + 1) * m), slot * m);
    });
    let x = given;
    for (let step = 0; step < steps; step++) {
      if (step && net.config.reinject) x = x.map((value, i) => value + given[i]);
      x = blocks(net, x, k);
      yield readout(net, x, order, tokens);
    }
  }

  const forward = (net, tokens, n) => run(net, tokens, n).next().value;

  /* The likeliest class of each cell. */
  function answer(logits, classes) {
    return Array.from({ length: logits.length / classes }, (_, i) => {
      let best = 0;
      for (let c = 1; c < classes; c++) if (logits[i * classes + c] > logits[i * classes + best]) best = c;
      return best;
    });
  }

  const api = { answer, forward, load, run };
  if (typeof module !== "undefined" && module.exports) module.exports = api;
  else root.MSENetwork = api;
})(typeof self !== "undefined" ? self : this);
