/* The page: state, drawing and input. All wiring comes from logic.js. */
(function () {
  "use strict";
  const L = window.MSE;
  const $ = (id) => document.getElementById(id);
  const SIZES = [2, 4, 8, 16, 32];
  const VIEWS = { matrix: "Matrix", place: "Matrix, in place", line: "Z-order line" };
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");

  const at = {
    n: 8, k: 3, view: "matrix", labels: "zorder", preset: "none", own: null, raster: null, // what was chosen
    step: 0, item: null, // where we are, and the marked item
    order: [], settings: [], items: [], places: [], // what follows from it
  };
  let motion = null; // {from, start} while cells move
  let player = null;

  /* ---- what follows from the choices ---- */

  function rebuild() {
    at.k = L.digitsOf(at.n);
    at.order = L.zorder(at.n);
    at.raster = at.raster || (at.preset === "own" ? at.own : L.namedPermutation(at.preset, at.n)); // drawn once
    at.settings = at.preset === "none" ? L.straight(at.k) : L.route(L.toSlots(at.raster, at.n));
    at.items = L.carry(at.settings, at.order.map((_, p) => p));
    at.places = at.items.map(L.inverse); // places[step][item]: its slot
    at.step = Math.min(at.step, L.states(at.k) - 1);
    if (at.item !== null && at.item >= at.n * at.n) at.item = null;
    motion = null;
    wireCache.key = "";
    buildTimeline();
    refresh();
  }

  function choose(changes) {
    Object.assign(at, changes);
    if ("n" in changes || "preset" in changes) at.raster = null;
    if ("n" in changes) {
      at.item = null;
      at.step = 0;
      if (at.preset === "own") at.preset = "none";
    }
    rebuild();
  }

  function goto(step) {
    const target = Math.max(0, Math.min(L.states(at.k) - 1, step));
    if (target === at.step) return refresh();
    motion = Math.abs(target - at.step) === 1 && !calm.matches ? { from: at.step, start: performance.now() } : null;
    at.step = target;
    refresh();
  }

  function mark(item) {
    at.item = item;
    wireCache.key = "";
    refresh();
  }

  /* ---- colours and numbers ---- */

  let ink = {};
  function readColours() {
    const style = getComputedStyle(document.documentElement);
    const names = ["page", "card", "ink", "soft", "line", "pale", "mark", "seen", "reach", "accent"];
    for (const name of [...names, "q0", "q1", "q2", "q3", "w0", "w1", "w2", "w3"]) {
      ink[name] = style.getPropertyValue(`--${name}`).trim();
    }
  }
  const quadrant = (item) => (4 * item) / (at.n * at.n) | 0;

  function number(item) {
    if (at.labels === "raster") return String(at.order[item]);
    return at.labels === "base4" ? item.toString(4).padStart(at.k, "0") : String(item);
  }

  /* ---- places on the canvas ---- */

  function fit(canvas, ratio) {
    const width = canvas.clientWidth;
    const height = Math.round(width * ratio);
    const scale = window.devicePixelRatio || 1;
    canvas.style.height = `${height}px`;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    return { pen, width, height };
  }

  /* Raster cell in which a slot is drawn: where it is now, or where it came from ("in place"). */
  const cellOf = (step, slot) => at.order[at.view === "place" ? L.home(at.k, step, slot) : slot];
  const slotAt = (step, cell) => {
    const address = L.inverse(at.order)[cell];
    return at.view === "place" ? L.slotOf(at.k, step, address) : address;
  };
  const ease = (t) => (t < 0.5 ? 2 * t * t : 1 - (2 - 2 * t) ** 2 / 2);

  function tile(pen, x, y, size, fill) {
    const gap = size > 14 ? 1.5 : size > 6 ? 0.75 : 0.25;
    pen.fillStyle = fill;
    pen.beginPath();
    pen.roundRect(x + gap, y + gap, size - 2 * gap, size - 2 * gap, Math.min(6, size / 6));
    pen.fill();
  }

  function outline(pen, x, y, size, colour, width) {
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.beginPath();
    pen.roundRect(x + width / 2, y + width / 2, size - width, size - width, Math.min(6, size / 6));
    pen.stroke();
  }

  function write(pen, text, x, y, size, colour) {
    pen.fillStyle = colour;
    pen.font = `${size}px system-ui, sans-serif`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillText(text, x, y);
  }

  /* ---- the matrix ---- */

  function drawMatrix(time) {
    const { pen, width } = fit($("main"), 1);
    const n = at.n;
    const size = width / n;
    const numbered = size >= (at.labels === "base4" ? 25 : 19);
    const places = at.places[at.step];
    const before = motion ? at.places[motion.from] : places;
    const pair = (item) => {
      const now = cellOf(at.step, places[item]);
      const old = motion ? cellOf(motion.from, before[item]) : now;
      const row = Math.floor(old / n) + (Math.floor(now / n) - Math.floor(old / n)) * time;
      const column = (old % n) + ((now % n) - (old % n)) * time;
      return [column * size, row * size];
    };
    for (let item = 0; item < n * n; item++) {
      const [x, y] = pair(item);
      tile(pen, x, y, size, ink[`q${quadrant(item)}`]);
      if (numbered) write(pen, number(item), x + size / 2, y + size / 2 + 1, Math.min(17, size * (at.labels === "base4" ? 0.3 : 0.36)), ink.ink);
    }
    if (!motion && at.view === "matrix" && n > 2) drawGroups(pen, size);
    if (at.item !== null) {
      if (!motion) drawPartners(pen, size);
      const [x, y] = pair(at.item);
      outline(pen, x, y, size, ink.mark, Math.max(2.5, Math.min(5, size / 9)));
    }
  }

  /* The four cells of every switch, which on the Z-order matrix are 2×2 blocks. */
  function drawGroups(pen, size) {
    if (size < 9) return;
    for (let r = 0; r < at.n; r += 2) {
      for (let c = 0; c < at.n; c += 2) outline(pen, c * size, r * size, 2 * size, ink.soft, size > 24 ? 1.25 : 0.75);
    }
  }

  /* The four cells that meet the marked one in its switch. */
  function drawPartners(pen, size) {
    const slot = at.places[at.step][at.item];
    const centres = [0, 1, 2, 3].map((i) => {
      const cell = cellOf(at.step, 4 * (slot >> 2) + i);
      return [((cell % at.n) + 0.5) * size, (Math.floor(cell / at.n) + 0.5) * size];
    });
    pen.strokeStyle = ink.mark;
    pen.lineWidth = 1.5;
    pen.setLineDash([4, 3]);
    const [a, b, c, d] = centres;
    pen.beginPath();
    for (const [x, y] of [a, b, d, c, a]) pen.lineTo(x, y);
    pen.stroke();
    pen.setLineDash([]);
    for (const [x, y] of centres) outline(pen, x - size / 2, y - size / 2, size, ink.mark, 1.5);
  }

  function drawField(canvas, field, fill) {
    const { pen, width } = fit(canvas, 1);
    const size = width / at.n;
    for (let slot = 0; slot < at.n * at.n; slot++) {
      const cell = at.order[slot];
      const x = (cell % at.n) * size;
      const y = Math.floor(cell / at.n) * size;
      const on = field !== null && field.has(slot);
      tile(pen, x, y, size, on ? fill : ink.pale);
      if (on && size > 5) {
        pen.fillStyle = ink.ink;
        pen.beginPath();
        pen.arc(x + size / 2, y + size / 2, Math.max(1, size / 9), 0, 7);
        pen.fill();
      }
    }
  }

  /* ---- the line: all layers at once ---- */

  const geometry = { width: 0, height: 0 };
  function column(step) {
    const switches = 2 * at.k - 1;
    const shuffles = 2 * at.k - 2;
    const unit = (geometry.width - 76) / (switches + 2.4 * shuffles || 1);
    return 38 + (Math.ceil(step / 2) + 2.4 * Math.floor(step / 2)) * unit;
  }
  function height(slot) {
    const length = at.n * at.n;
    const gap = length <= 256 ? 0.8 : 0;
    return 14 + ((slot + 0.5 + gap * (slot >> 2)) / (length + gap * (length / 4 - 1))) * (geometry.height - 28);
  }

  const wireCache = { key: "", canvas: document.createElement("canvas") };

  function paintWires(scale) {
    const key = [geometry.width, geometry.height, scale, at.n, at.preset, at.item, at.item === null ? 0 : at.step, ink.page].join();
    if (wireCache.key === key) return;
    wireCache.key = key;
    const { canvas } = wireCache;
    canvas.width = geometry.width * scale;
    canvas.height = geometry.height * scale;
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    const length = at.n * at.n;
    const cone = at.item === null ? null : L.cone(at.k, at.step, at.places[at.step][at.item]);
    const thin = Math.max(0.35, Math.min(1.6, 60 / length));
    for (let layer = 0; layer < 2 * at.k - 1; layer++) {
      const left = column(2 * layer);
      const right = column(2 * layer + 1);
      for (let group = 0; group < length / 4 && length <= 256; group++) {
        const on = cone && cone[2 * layer].has(4 * group) && cone[2 * layer + 1].has(4 * group);
        const top = height(4 * group);
        const bottom = height(4 * group + 3);
        const margin = (bottom - top) / 5;
        pen.fillStyle = on ? ink.pale : ink.card;
        pen.strokeStyle = on ? ink.ink : ink.line;
        pen.lineWidth = on ? 1.2 : 0.8;
        pen.beginPath();
        pen.roundRect(left, top - margin, right - left, bottom - top + 2 * margin, 3);
        pen.fill();
        pen.stroke();
      }
    }
    const wire = (step, source, slot) => {
      const [x, y, x1, y1] = [column(step - 1), height(source), column(step), height(slot)];
      pen.beginPath();
      pen.moveTo(x, y);
      pen.bezierCurveTo((x + x1) / 2, y, (x + x1) / 2, y1, x1, y1);
      pen.stroke();
    };
    for (let step = 1; step < L.states(at.k); step++) {
      const gather = step % 2 ? at.settings[(step - 1) / 2] : L.qrotate(at.k, L.schedule(at.k)[step / 2 - 1].steps);
      pen.lineWidth = thin;
      gather.forEach((source, slot) => {
        pen.strokeStyle = cone ? ink.line : ink[`w${quadrant(at.items[step][slot])}`];
        wire(step, source, slot);
      });
    }
    for (let step = 1; cone && step < L.states(at.k); step++) { // what the marked cell has seen, and will reach
      const past = step <= at.step;
      pen.strokeStyle = past ? ink.w0 : ink.w1;
      pen.setLineDash(!past && length <= 64 ? [6, 2] : []);
      pen.lineWidth = Math.max(0.35, Math.min(2.2, 110 / length));
      for (const slot of cone[step]) {
        const sources = step % 2 ? [0, 1, 2, 3].map((i) => 4 * (slot >> 2) + i) : [L.qrotate(at.k, L.schedule(at.k)[step / 2 - 1].steps)[slot]];
        for (const source of sources) if (cone[step - 1].has(source)) wire(step, source, slot);
      }
    }
  }

  function drawLine(time) {
    const canvas = $("main");
    const ratio = at.n <= 2 ? 0.3 : at.n <= 4 ? 0.42 : 0.62;
    const { pen, width, height: tall } = fit(canvas, canvas.clientWidth < 600 ? 1.2 * Math.max(0.5, ratio) : ratio);
    Object.assign(geometry, { width, height: tall });
    paintWires(window.devicePixelRatio || 1);
    pen.drawImage(wireCache.canvas, 0, 0, width, tall);
    const from = motion ? motion.from : at.step;
    const x = column(from) + (column(at.step) - column(from)) * time;
    pen.strokeStyle = ink.mark;
    pen.lineWidth = 1.5;
    pen.setLineDash([3, 4]);
    pen.beginPath();
    pen.moveTo(x, 2);
    pen.lineTo(x, tall - 2);
    pen.stroke();
    pen.setLineDash([]);
    const length = at.n * at.n;
    const radius = length <= 16 ? 9 : length <= 64 ? 4 : length <= 256 ? 1.8 : 0;
    for (let item = 0; item < length; item++) {
      const marked = item === at.item;
      if (!radius && !marked) continue;
      const old = height(at.places[from][item]);
      const y = old + (height(at.places[at.step][item]) - old) * time;
      pen.fillStyle = ink[`q${quadrant(item)}`];
      pen.strokeStyle = marked ? ink.mark : ink.ink;
      pen.lineWidth = marked ? 3 : 0.6;
      pen.beginPath();
      pen.arc(x, y, marked ? Math.max(5, radius + 1) : radius, 0, 7);
      pen.fill();
      pen.stroke();
      if (length <= 16) write(pen, number(item), x, y + 0.5, 9.5, ink.ink);
    }
  }

  /* ---- words ---- */

  function stepName(step) {
    if (step === 0) return "the input";
    if (step % 2) return `QSwitch “${L.schedule(at.k)[(step - 1) / 2].unit}”`;
    return L.schedule(at.k)[step / 2 - 1].steps > 0 ? "QShuffle" : "inverse QShuffle";
  }

  function describe() {
    const { k, n, step } = at;
    const parts = [`Step ${step} of ${L.states(k) - 1}: ${stepName(step)}.`];
    if (step % 2) {
      const j = L.digitTouched(k, step);
      parts.push(`It mixes digit ${j} of the address: cells {r, r+${2 ** j}} × {c, c+${2 ** j}} of the original matrix.`);
    } else if (step) {
      const rotation = L.schedule(k)[step / 2 - 1].steps > 0 ? "right" : "left";
      parts.push(`Each slot reads the slot whose base-4 digits are rotated ${rotation}.`);
    }
    if (at.item !== null) {
      const slot = at.places[step][at.item];
      const cone = L.cone(k, step, slot);
      const cell = cellOf(step, slot);
      parts.push(`Marked: cell (row ${Math.floor(cell / n)}, column ${cell % n}), slot ${slot.toString(4).padStart(k, "0")} in base 4,` +
        ` carries item ${number(at.item)}. It has seen ${cone[0].size} of ${n * n} inputs` +
        ` and will reach ${cone[cone.length - 1].size} of ${n * n} outputs.`);
    }
    return parts.join(" ");
  }

  /* ---- painting ---- */

  let pending = false;
  function refresh() {
    document.body.dataset.step = at.step;
    $("stage").className = at.view === "line" ? "line" : "";
    $("main-title").textContent = at.view === "line" ? "every layer, slots from top to bottom in Z-order"
      : at.view === "place" ? `after ${stepName(at.step)}: every cell kept in place` : `after ${stepName(at.step)}`;
    if (at.step === 0 && at.view !== "line") $("main-title").textContent = "the input";
    $("caption").textContent = describe();
    $("first").disabled = $("back").disabled = at.step === 0;
    $("next").disabled = $("end").disabled = at.step === L.states(at.k) - 1;
    for (const chip of $("timeline").querySelectorAll("button")) {
      if (Number(chip.dataset.step) === at.step) {
        chip.setAttribute("aria-current", "step");
        const strip = $("timeline");
        strip.scrollLeft = chip.offsetLeft - strip.offsetLeft - strip.clientWidth / 2;
      } else chip.removeAttribute("aria-current");
    }
    if (!pending) {
      pending = true;
      requestAnimationFrame(paint);
    }
  }

  function paint(now) {
    pending = false;
    readColours();
    let time = 1;
    if (motion) {
      const share = Math.max(0, Math.min(1, (now - motion.start) / 480));
      time = ease(share);
      if (share < 1) {
        pending = true;
        requestAnimationFrame(paint);
      } else motion = null;
    }
    if (at.view === "line") return drawLine(time);
    drawMatrix(time);
    const cone = at.item === null ? null : L.cone(at.k, at.step, at.places[at.step][at.item]);
    drawField($("inputs"), cone && cone[0], ink.seen);
    drawField($("outputs"), cone && cone[cone.length - 1], ink.reach);
  }

  function buildTimeline() {
    const list = $("timeline");
    list.replaceChildren();
    for (let step = 0; step < L.states(at.k); step++) {
      const chip = document.createElement("button");
      chip.type = "button";
      chip.dataset.step = step;
      chip.className = step && step % 2 === 0 ? "chip shuffle" : "chip";
      const steps = step && step % 2 === 0 ? L.schedule(at.k)[step / 2 - 1].steps : 0;
      const name = step === 0 ? "input" : step % 2 ? "switch" : steps > 0 ? "shuffle" : "shuffle⁻¹";
      chip.append(name);
      if (step % 2) {
        const note = document.createElement("small");
        note.textContent = `${L.schedule(at.k)[(step - 1) / 2].unit}, digit ${L.digitTouched(at.k, step)}`;
        chip.append(note);
      }
      chip.addEventListener("click", () => { stop(); goto(step); });
      const place = document.createElement("li");
      place.append(chip);
      list.append(place);
    }
  }

  /* ---- input ---- */

  function stop() {
    clearInterval(player);
    player = null;
    $("play").textContent = "▶\uFE0E Play";
    $("play").setAttribute("aria-label", "Play");
  }
  function play() {
    if (player) return stop();
    if (at.step === L.states(at.k) - 1) { motion = null; at.step = 0; refresh(); }
    $("play").textContent = "❚❚ Pause";
    $("play").setAttribute("aria-label", "Pause");
    player = setInterval(() => {
      goto(at.step + 1);
      if (at.step === L.states(at.k) - 1) stop();
    }, 900);
  }

  function pick(event) {
    const canvas = $("main");
    const bounds = canvas.getBoundingClientRect();
    const x = event.clientX - bounds.left;
    const y = event.clientY - bounds.top;
    if (at.view === "line") {
      const nearest = (count, position, value) => {
        let best = 0;
        for (let i = 1; i < count; i++) if (Math.abs(position(i) - value) < Math.abs(position(best) - value)) best = i;
        return best;
      };
      at.step = nearest(L.states(at.k), column, x);
      motion = null;
      return mark(at.items[at.step][nearest(at.n * at.n, height, y)]);
    }
    const size = bounds.width / at.n;
    const cell = Math.min(at.n - 1, Math.floor(y / size)) * at.n + Math.min(at.n - 1, Math.floor(x / size));
    const item = at.items[at.step][slotAt(at.step, cell)];
    mark(item === at.item ? null : item);
  }

  function nudge(dx, dy) {
    if (at.item === null) return mark(at.items[at.step][slotAt(at.step, 0)]);
    const slot = at.places[at.step][at.item];
    if (at.view === "line") {
      if (dx) return goto(at.step + dx);
      return mark(at.items[at.step][Math.max(0, Math.min(at.n * at.n - 1, slot + dy))]);
    }
    const cell = cellOf(at.step, slot);
    const row = Math.max(0, Math.min(at.n - 1, Math.floor(cell / at.n) + dy));
    const col = Math.max(0, Math.min(at.n - 1, (cell % at.n) + dx));
    mark(at.items[at.step][slotAt(at.step, row * at.n + col)]);
  }

  function keyboard(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.closest("input:not([type=radio]), textarea, select, details");
    if (typing) return;
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const onCanvas = event.target === $("main");
    const action = {
      ",": () => { stop(); goto(at.step - 1); },
      ".": () => { stop(); goto(at.step + 1); },
      v: () => {
        const names = Object.keys(VIEWS);
        select("view", names[(names.indexOf(at.view) + 1) % names.length]);
      },
      Escape: () => mark(null),
      " ": event.target.closest("button, summary, a, input") ? null : play,
    }[event.key.length === 1 ? event.key.toLowerCase() : event.key] || (onCanvas && moves[event.key] && (() => nudge(...moves[event.key])));
    if (!action) return;
    event.preventDefault();
    action();
  }

  function select(name, value) {
    document.querySelector(`input[name="${name}"][value="${value}"]`).click();
  }

  function segments(fieldset, name, options, chosen, change) {
    for (const [value, text] of options) {
      const label = document.createElement("label");
      label.className = "seg";
      const input = Object.assign(document.createElement("input"), { type: "radio", name, value, checked: String(value) === String(chosen) });
      input.addEventListener("change", () => change(input.value));
      label.append(input, Object.assign(document.createElement("span"), { textContent: text }));
      fieldset.append(label);
    }
  }

  function choosePreset(name) {
    $("own").hidden = name !== "own";
    $("problem").textContent = "";
    if (name !== "own") return choose({ preset: name });
    const shown = at.preset === "none" ? L.namedPermutation("transpose", at.n) : at.raster;
    $("permutation").value = Array.from({ length: at.n }, (_, r) => shown.slice(r * at.n, (r + 1) * at.n).join(" ")).join("\n");
    $("labels").value = at.labels = "raster"; // the numbers that are typed
    refresh();
    $("permutation").rows = Math.min(10, Math.max(3, at.n));
    $("permutation").focus();
  }

  function routeOwn(event) {
    event.preventDefault();
    try {
      const own = L.parsePermutation($("permutation").value, at.n);
      $("problem").textContent = "";
      choose({ preset: "own", own, step: 0 });
    } catch (error) {
      $("problem").textContent = error.message;
    }
  }

  function theme(dark) {
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    wireCache.key = "";
    refresh();
  }

  /* The demo's code and weights are fetched only when it is opened; script tags work from file:// too. */
  function openDemo() {
    if (!$("demo").open || $("demo").dataset.loaded) return;
    $("demo").dataset.loaded = "yes";
    const load = (source, then) => {
      const script = Object.assign(document.createElement("script"), { src: source, onload: then });
      script.onerror = () => { $("demo-body").textContent = `${source} is missing beside this page.`; };
      document.head.append(script);
    };
    load("network.js", () => load("demo.js", () => window.MSEDemo.start($("demo-body"), load)));
  }

  function start() {
    const wish = new URLSearchParams(location.hash.slice(1));
    if (SIZES.includes(Number(wish.get("n")))) at.n = Number(wish.get("n"));
    if (Object.hasOwn(VIEWS, wish.get("view"))) at.view = wish.get("view");
    if (Object.hasOwn(L.named, wish.get("preset"))) at.preset = wish.get("preset");
    segments($("sizes"), "n", SIZES.map((n) => [n, n]), at.n, (n) => {
      stop();
      choose({ n: Number(n) });
      $("preset").value = at.preset;
      $("own").hidden = true;
    });
    segments($("views"), "view", Object.entries(VIEWS), at.view, (view) => choose({ view }));
    const words = { none: "straight: nothing moves", random: "a random permutation", own: "type your own …" };
    for (const name of [...Object.keys(L.named), "random", "own"]) $("preset").append(new Option(words[name] || name, name));
    $("preset").value = at.preset;
    $("preset").addEventListener("change", (event) => choosePreset(event.target.value));
    $("labels").addEventListener("change", (event) => { at.labels = event.target.value; refresh(); });
    $("own").addEventListener("submit", routeOwn);
    $("first").addEventListener("click", () => { stop(); goto(0); });
    $("back").addEventListener("click", () => { stop(); goto(at.step - 1); });
    $("next").addEventListener("click", () => { stop(); goto(at.step + 1); });
    $("end").addEventListener("click", () => { stop(); goto(Infinity); });
    $("play").addEventListener("click", play);
    $("main").addEventListener("click", pick);
    $("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme !== "dark"));
    $("demo").addEventListener("toggle", openDemo);
    document.addEventListener("keydown", keyboard);
    new ResizeObserver(refresh).observe($("main-panel"));
    window.explorer = at; // for tests and the curious
    theme(window.matchMedia("(prefers-color-scheme: dark)").matches);
    rebuild();
    if (wish.get("demo")) $("demo").open = true;
  }
  start();
})();
