/* The demo: choose a network, paint a matrix and let the network transform it. Sudoku has a file of its own. */
(function () {
  "use strict";
  const N = window.MSENetwork;
  const nets = {}; // loaded so far
  const make = (tag, properties = {}, ...children) => {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...children);
    return node;
  };
  const square = (h, w) => { let n = 2; while (n < Math.max(h, w)) n *= 2; return n; };

  /* What a painted task should give: rows of tokens in, rows of tokens out. */
  const RIGHT = {
    transpose: (rows) => rows[0].map((_, c) => rows.map((row) => row[c])),
    rotate90: (rows) => rows[0].map((_, i) => rows.map((row) => row[row.length - 1 - i])), // counter-clockwise
  };
  const HUES = ["", "#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#F0E442", "#0072B2", "#D55E00", "#999999", "#B2DF8A", "#CAB2D6", "#FB9A99"];
  const DARK = new Set([3, 6, 7]); // white numbers are easier to read on these

  function padded(rows, n) {
    const out = new Array(n * n).fill(0);
    rows.forEach((row, r) => row.forEach((token, c) => { out[r * n + c] = token; }));
    return out;
  }

  function tileOf(token) {
    const tile = make("button", { type: "button", textContent: token || "" });
    if (token) Object.assign(tile.style, { background: HUES[token], color: DARK.has(token) ? "#fff" : "#1f2328" });
    return tile;
  }

  function boardOf(rows, label) {
    const board = make("div", { className: "board" });
    board.style.width = `${(340 * rows[0].length) / Math.max(rows.length, rows[0].length)}px`; // equal cells on both sides
    board.style.gridTemplateColumns = `repeat(${rows[0].length}, 1fr)`;
    board.setAttribute("role", "group");
    board.setAttribute("aria-label", label);
    return board;
  }

  /* ---- paint and transform ---- */

  function painter(body, entry, net) {
    const letter = ["11111111", "16666611", "16111111", "16661111", "16111111", "16111111", "11111122", "11111122"];
    let rows = letter.map((line) => [...line].map(Number));
    let brush = 7;
    const area = make("div", { className: "demo-boards" });
    const verdict = make("p", { className: "hint", id: "verdict" });
    verdict.setAttribute("aria-live", "polite");

    function show() {
      const n = square(rows.length, rows[0].length);
      const start = performance.now();
      const tokens = N.answer(N.forward(net, padded(rows, n), n), net.config.out_classes);
      const took = performance.now() - start;
      const want = RIGHT[entry.task](rows);
      const goal = padded(want, n);
      const wrong = tokens.filter((token, i) => token !== goal[i]).length;
      const before = boardOf(rows, "the matrix you paint");
      rows.forEach((row, r) => row.forEach((token, c) => {
        const tile = tileOf(token);
        tile.setAttribute("aria-label", `row ${r}, column ${c}: ${token}`);
        tile.dataset.at = `${r},${c}`;
        before.append(tile);
      }));
      const after = boardOf(want, "what the network answers");
      want.forEach((row, r) => row.forEach((token, c) => {
        const tile = tileOf(tokens[r * n + c]);
        tile.disabled = true;
        tile.style.opacity = 1;
        if (tokens[r * n + c] !== token) tile.classList.add("wrong");
        after.append(tile);
      }));
      const paint = (event) => {
        const tile = document.elementFromPoint(event.clientX, event.clientY)?.closest("[data-at]");
        if (!tile || !before.contains(tile)) return;
        const [r, c] = tile.dataset.at.split(",").map(Number);
        if (rows[r][c] === brush) return;
        rows[r][c] = brush;
        const painted = tileOf(brush);
        tile.textContent = painted.textContent;
        tile.style.cssText = painted.style.cssText;
        changed = true;
      };
      let changed = false;
      before.style.touchAction = "none";
      before.addEventListener("pointerdown", (event) => { before.dataset.down = "yes"; paint(event); });
      before.addEventListener("pointermove", (event) => { if (before.dataset.down) paint(event); });
      const lift = () => { delete before.dataset.down; if (changed) { changed = false; show(); } };
      before.addEventListener("pointerup", lift);
      before.addEventListener("pointerleave", lift);
      before.addEventListener("click", (event) => { // keyboard: Enter on a cell
        const tile = event.target.closest("[data-at]");
        if (!tile || event.detail) return;
        const [r, c] = tile.dataset.at.split(",").map(Number);
        rows[r][c] = brush;
        show();
        area.querySelector(`[data-at="${r},${c}"]`).focus();
      });
      const title = (text, board) => make("div", {}, make("h3", { textContent: text }), board);
      area.replaceChildren(title("paint here", before), title("the network's answer", after));
      verdict.textContent = wrong
        ? `${n * n - wrong} of ${n * n} cells right (wrong ones are framed), ${took.toFixed(0)} ms`
        : `all ${n * n} cells right, ${took.toFixed(0)} ms on ${n}×${n}`;
    }

    const palette = make("div", { className: "demo-row palette" });
    palette.setAttribute("role", "group");
    palette.setAttribute("aria-label", "symbol to paint with");
    for (let token = 1; token < Math.min(12, net.config.in_classes); token++) {
      const button = tileOf(token);
      button.setAttribute("aria-pressed", token === brush);
      button.addEventListener("click", () => {
        brush = token;
        palette.querySelectorAll("button").forEach((other, i) => other.setAttribute("aria-pressed", i + 1 === brush));
      });
      palette.append(button);
    }
    const sizes = entry.squares ? [[4, 4], [8, 8], [16, 16]] : [[4, 4], [5, 7], [8, 8], [11, 6], [16, 16]];
    const size = make("select", { ariaLabel: "size of the matrix" }, ...sizes.map(([h, w]) => new Option(`${h} × ${w}`, `${h},${w}`)));
    size.value = "8,8";
    size.addEventListener("change", () => {
      const [h, w] = size.value.split(",").map(Number);
      rows = Array.from({ length: h }, (_, r) => Array.from({ length: w }, (_, c) => (rows[r] && rows[r][c]) || 1));
      show();
    });
    const dice = make("button", { type: "button", textContent: "Random", onclick: () => {
      rows = rows.map((row) => row.map(() => 1 + Math.floor(Math.random() * (Math.min(12, net.config.in_classes) - 1))));
      show();
    } });
    body.append(make("div", { className: "demo-row" }, size, dice, palette), area, verdict);
    show();
  }

  /* ---- choosing a network ---- */

  function start(body, load) {
    load("networks/index.js", () => {
      const list = window.MSE_INDEX;
      const choice = make("select", { id: "network", ariaLabel: "network" }, ...list.map((entry) => new Option(entry.title, entry.name)));
      const about = make("p", { className: "hint", id: "about" });
      const area = make("div");
      const open = () => {
        const entry = list.find((candidate) => candidate.name === choice.value);
        about.textContent = `loading ${(entry.bytes / 1e6).toFixed(1)} MB …`;
        const ready = () => {
          nets[entry.name] = nets[entry.name] || N.load(window.MSE_NETWORKS[entry.name]);
          if (choice.value !== entry.name) return;
          area.replaceChildren();
          const { feature_maps: m, blocks: b, in_classes: classes } = nets[entry.name].config;
          about.textContent = `${entry.about} ${b} Beneš block${b > 1 ? "s" : ""}, ${m} feature maps, alphabet of ${classes}.`;
          (entry.task === "sudoku" ? window.MSESudoku.panel : painter)(area, entry, nets[entry.name]);
          document.body.dataset.network = entry.name;
        };
        if (nets[entry.name]) ready();
        else if (entry.task === "sudoku" && !window.MSESudoku) load("sudoku.js", () => load(`networks/${entry.name}.js`, ready));
        else load(`networks/${entry.name}.js`, ready);
      };
      const wish = new URLSearchParams(location.hash.slice(1)).get("demo"); // index.html#demo=sudoku
      if (list.some((entry) => entry.name === wish)) choice.value = wish;
      choice.addEventListener("change", open);
      body.replaceChildren(make("div", { className: "demo-row" }, make("label", {}, "Network ", choice)), about, area);
      open();
    });
  }

  window.MSEDemo = { nets, start };
})();
