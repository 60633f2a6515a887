/* The demo: paint a matrix and let a network transform it, or type a Sudoku and watch the answers grow. */
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

  /* ---- Sudoku ---- */

  const EXAMPLES = [
    "530070000600195000098000060800060003400803001700020006060000280000419005000080079",
    "000000010400000000020000000000050407008000300001090000300400200050100000000806000",
  ];

  function sudoku(body, entry, net) {
    const inputs = [];
    const grid = make("div", { className: "board sudoku" });
    grid.style.gridTemplateColumns = "repeat(9, 1fr)";
    for (let i = 0; i < 81; i++) {
      const edge = `${i % 9 % 3 === 2 && i % 9 < 8 ? "edge-right" : ""} ${Math.floor(i / 9) % 3 === 2 && i < 72 ? "edge-bottom" : ""}`;
      const input = make("input", { inputMode: "numeric", maxLength: 1, className: edge, autocomplete: "off" });
      input.dataset.edge = edge;
      input.setAttribute("aria-label", `row ${Math.floor(i / 9) + 1}, column ${i % 9 + 1}`);
      input.addEventListener("input", () => {
        input.value = input.value.replace(/[^1-9]/g, "");
        input.className = `${input.dataset.edge} ${input.value ? "given" : ""}`;
        input.style.color = "";
      });
      input.addEventListener("keydown", (event) => {
        const move = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -9, ArrowDown: 9 }[event.key];
        if (move && inputs[i + move]) { inputs[i + move].focus(); event.preventDefault(); }
      });
      inputs.push(input);
      grid.append(input);
    }
    const status = make("p", { className: "hint", id: "sudoku-status" });
    status.setAttribute("aria-live", "polite");
    let turn = 0;

    const fill = (text) => {
      turn++;
      [...text].forEach((digit, i) => {
        inputs[i].value = digit === "0" ? "" : digit;
        inputs[i].className = `${inputs[i].dataset.edge} ${digit === "0" ? "" : "given"}`;
        inputs[i].style.color = "";
      });
      status.textContent = `${[...text].filter((digit) => digit !== "0").length} givens`;
    };

    const clashes = (digits) => {
      const bad = new Set();
      const units = [];
      for (let u = 0; u < 9; u++) {
        units.push(digits.map((_, i) => i).filter((i) => Math.floor(i / 9) === u));
        units.push(digits.map((_, i) => i).filter((i) => i % 9 === u));
        units.push(digits.map((_, i) => i).filter((i) => Math.floor(i / 27) * 3 + Math.floor(i % 9 / 3) === u));
      }
      for (const unit of units) for (const i of unit) for (const j of unit) if (i < j && digits[i] && digits[i] === digits[j]) bad.add(i).add(j);
      return bad;
    };

    function solve() {
      const mine = ++turn;
      const given = inputs.map((input) => (input.classList.contains("given") ? Number(input.value) : 0));
      const wrong = clashes(given);
      if (wrong.size) {
        status.textContent = `these givens contradict each other: ${[...wrong].map((i) => `row ${Math.floor(i / 9) + 1} column ${i % 9 + 1}`).join(", ")}`;
        return;
      }
      const rows = Array.from({ length: 9 }, (_, r) => given.slice(9 * r, 9 * r + 9).map((digit) => digit + 1)); // empty is 1
      const classes = net.config.out_classes;
      const steps = 30;
      const answers = N.run(net, padded(rows, 16), 16, steps);
      let step = 0;
      const tick = () => {
        if (mine !== turn) return;
        const logits = answers.next().value;
        if (!logits) return;
        step++;
        const digits = given.map((digit, i) => {
          const at = (16 * Math.floor(i / 9) + i % 9) * classes;
          let best = 1;
          for (let c = 2; c < classes; c++) if (logits[at + c] > logits[at + best]) best = c;
          let sum = 0; // class 0 is the padding around the grid
          for (let c = 1; c < classes; c++) sum += Math.exp(logits[at + c] - logits[at + best]);
          if (!digit) Object.assign(inputs[i], { value: best, className: inputs[i].dataset.edge })
            .style.color = `color-mix(in srgb, var(--ink) ${Math.round(30 + 70 / sum)}%, transparent)`; // pale: unsure
          return digit || best;
        });
        const bad = clashes(digits);
        const empty = given.filter((digit) => !digit).length;
        const free = given.filter((digit, i) => !digit && !bad.has(i)).length;
        status.textContent = bad.size ? `step ${step} of ${steps}: ${free} of ${empty} filled cells without contradiction` : `solved at step ${step}`;
        if (bad.size && step < steps) setTimeout(tick, 0);
      };
      status.textContent = "thinking …";
      setTimeout(tick, 0);
    }

    let shown = 0;
    body.append(
      make("div", { className: "demo-row" },
        make("button", { type: "button", textContent: "Work on it", id: "solve", onclick: solve }),
        make("button", { type: "button", textContent: "Another example", onclick: () => fill(EXAMPLES[++shown % EXAMPLES.length]) }),
        make("button", { type: "button", textContent: "Empty board", onclick: () => fill("0".repeat(81)) })),
      make("div", { className: "demo-boards" }, grid), status);
    fill(EXAMPLES[0]);
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
          (entry.task === "sudoku" ? sudoku : painter)(area, entry, nets[entry.name]);
          document.body.dataset.network = entry.name;
        };
        if (nets[entry.name]) ready();
        else load(`networks/${entry.name}.js`, ready);
      };
      choice.addEventListener("change", open);
      body.replaceChildren(make("div", { className: "demo-row" }, make("label", {}, "Network ", choice)), about, area);
      open();
    });
  }

  window.MSEDemo = { nets, start };
})();
