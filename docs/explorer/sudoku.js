/* The Sudoku panel: type or paste a puzzle and step through what a recurrent network makes of it.
 *
 * A puzzle is 81 whole numbers in reading order, 0 for an empty cell. The network sees it in a 16×16 matrix, in the
 * rows and columns `lines`; there, padding is token 0, an empty cell 1 and digit d is d + 1. Answers are classes 1-9.
 */
(function (root) {
  "use strict";
  const SIDE = 16;
  const SURE = 0.9; // confidence from which a digit is shown plainly,
  const LIKELY = 0.5; // and with one question mark; below it has two
  const BUDGET = 20000; // places the exact search looks at before it gives up

  const CELLS = Array.from({ length: 81 }, (_, i) => i);
  const boxOf = (i) => 3 * Math.floor(i / 27) + Math.floor((i % 9) / 3);
  const related = (i, j) => Math.floor(i / 9) === Math.floor(j / 9) || i % 9 === j % 9 || boxOf(i) === boxOf(j);
  const PEERS = CELLS.map((i) => CELLS.filter((j) => j !== i && related(i, j)));
  const place = (i) => `row ${Math.floor(i / 9) + 1} column ${i % 9 + 1}`;

  /* 81 digits with 0 or . for an empty cell; blanks and line breaks do not count. */
  function parse(text) {
    const letters = [...text.replace(/\s/g, "")];
    const odd = letters.findIndex((letter) => !/[0-9.]/.test(letter));
    if (odd >= 0) throw new Error(`character "${letters[odd]}" at place ${odd + 1}: use the digits 1-9, and 0 or . for an empty cell`);
    if (letters.length !== 81) throw new Error(`a puzzle has 81 characters, this one has ${letters.length}: write 9 rows of 9, 0 or . for an empty cell`);
    return letters.map((letter) => (letter === "." ? 0 : Number(letter)));
  }

  /* The filled cells whose digit stands again in their row, column or box. */
  const clashes = (digits) => CELLS.filter((i) => digits[i] && PEERS[i].some((j) => digits[j] === digits[i]));
  const obeys = (digits) => digits.every((digit) => digit >= 1) && !clashes(digits).length;

  /* How many solutions: 0, 1, 2 for several, or null when the search takes too long. */
  function countSolutions(puzzle) {
    const digits = [...puzzle];
    let found = 0;
    let left = BUDGET;
    const search = () => {
      let best = -1;
      let choices = null;
      for (const i of CELLS) {
        if (digits[i]) continue;
        const taken = new Set(PEERS[i].map((j) => digits[j]));
        const free = [1, 2, 3, 4, 5, 6, 7, 8, 9].filter((digit) => !taken.has(digit));
        if (!choices || free.length < choices.length) [best, choices] = [i, free];
        if (free.length < 2) break;
      }
      if (!choices) { found++; return; }
      for (const digit of choices) {
        if (--left < 0 || found > 1) break;
        digits[best] = digit;
        search();
      }
      digits[best] = 0;
    };
    search();
    return found > 1 ? 2 : left < 0 ? null : found;
  }

  /* What is wrong with the givens, or "". */
  function contradiction(puzzle) {
    const first = clashes(puzzle)[0];
    if (first === undefined) return "";
    const other = PEERS[first].find((j) => puzzle[j] === puzzle[first]);
    return `the givens contradict each other: see the ${puzzle[first]} at ${place(first)} and ${place(other)}; correct one of them`;
  }

  /* Throws on a puzzle that nobody can solve; returns a remark on one with several solutions, else "". */
  function check(puzzle) {
    const wrong = contradiction(puzzle);
    if (wrong) throw new Error(wrong);
    const count = countSolutions(puzzle);
    if (count === 0) throw new Error("this puzzle has no solution: no grid agrees with its givens; check them");
    return count === 2 ? "This puzzle has several solutions; any of them counts. " : "";
  }

  function tokensOf(puzzle, lines) {
    const tokens = new Array(SIDE * SIDE).fill(0);
    puzzle.forEach((digit, i) => { tokens[SIDE * lines[Math.floor(i / 9)] + lines[i % 9]] = digit + 1; });
    return tokens;
  }

  /* Logits [16 * 16 * classes] -> {digits, confidence} of the 81 cells; givens stay as they are. */
  function read(logits, classes, puzzle, lines) {
    const digits = [];
    const confidence = [];
    puzzle.forEach((given, i) => {
      const at = (SIDE * lines[Math.floor(i / 9)] + lines[i % 9]) * classes;
      let best = 1; // class 0 is the padding around the cells: none of them is that
      for (let c = 2; c < classes; c++) if (logits[at + c] > logits[at + best]) best = c;
      let sum = 0;
      for (let c = 1; c < classes; c++) sum += Math.exp(logits[at + c] - logits[at + best]);
      digits.push(given || best);
      confidence.push(given ? 1 : 1 / sum);
    });
    return { digits, confidence };
  }

  const logic = { check, clashes, contradiction, countSolutions, obeys, parse, read, tokensOf };
  if (typeof module !== "undefined" && module.exports) { module.exports = logic; return; }

  /* ---- the panel ---- */

  const EXAMPLES = [ // from easy to the fewest givens there can be
    "063280491749100602812046357200304065638010049095002000057420910020670000106509720",
    "000280401740000602812046057200304065608010049095002000057020910020670000106009020",
    "530070000600195000098000060800060003400803001700020006060000280000419005000080079",
    "000000010400000000020000000000050407008000300001090000300400200050100000000806000",
  ];
  const TEMPO = 250; // milliseconds for each application while playing

  const make = (tag, properties = {}, ...children) => {
    const { aria = {}, ...own } = properties;
    const node = Object.assign(document.createElement(tag), own);
    for (const [name, value] of Object.entries(aria)) node.setAttribute(name === "role" ? name : `aria-${name}`, value);
    node.append(...children);
    return node;
  };
  const edges = (i) => `${i % 9 % 3 === 2 && i % 9 < 8 ? "edge-right" : ""} ${Math.floor(i / 9) % 3 === 2 && i < 72 ? "edge-bottom" : ""}`;

  function panel(body, entry, net) {
    const { lines, steps } = entry;
    let puzzle = parse(EXAMPLES[0]);
    let answers = []; // after each application so far
    let source = null; // yields the logits of the next application
    let shown = 0; // how many applications the right board shows; 0: the puzzle
    let remark = "";
    let timer = 0;
    let example = 0;

    const problem = make("p", { className: "problem", id: "sudoku-problem", aria: { role: "alert" } });
    const status = make("p", { className: "hint", id: "sudoku-status" });
    const verdict = make("p", { className: "verdict", id: "sudoku-verdict", aria: { role: "status" } });

    /* what you type */
    const inputs = CELLS.map((i) => {
      const input = make("input", { inputMode: "numeric", autocomplete: "off", tabIndex: i ? -1 : 0, aria: { label: place(i) } });
      input.addEventListener("input", (event) => {
        const typed = (event.data || input.value).slice(-1); // a second digit replaces the first, wherever it is typed
        if (/[1-9]/.test(typed)) puzzle[i] = Number(typed);
        else if (!typed || /[0. ]/.test(typed)) puzzle[i] = 0;
        else problem.textContent = `a cell holds a digit from 1 to 9; got "${typed}"`;
        if (!typed || /[0-9. ]/.test(typed)) edited();
        else input.value = puzzle[i] || "";
      });
      input.addEventListener("focus", () => {
        inputs.forEach((other) => { other.tabIndex = other === input ? 0 : -1; });
        input.select();
      });
      input.addEventListener("keydown", (event) => {
        const [r, c] = [Math.floor(i / 9), i % 9];
        const to = { ArrowLeft: [r, c - 1], ArrowRight: [r, c + 1], ArrowUp: [r - 1, c], ArrowDown: [r + 1, c], Home: [r, 0], End: [r, 8] }[event.key];
        if (to && !event.ctrlKey && !event.metaKey && !event.altKey) {
          event.preventDefault();
          if (to.every((line) => line >= 0 && line < 9)) inputs[9 * to[0] + to[1]].focus();
        } else if (event.key === "Enter") whole(next);
      });
      input.addEventListener("paste", (event) => {
        const text = event.clipboardData.getData("text").trim();
        if (text.length < 2) return; // one digit: as if typed
        event.preventDefault();
        enter(text);
      });
      return input;
    });

    /* what the network says */
    const cells = CELLS.map((i) => make("div", { className: edges(i), aria: { role: "cell" } }));

    const rowsOf = (nodes, role) => [0, 1, 2, 3, 4, 5, 6, 7, 8].map((r) =>
      make("div", { className: "line", aria: role ? { role } : {} }, ...nodes.slice(9 * r, 9 * r + 9)));

    const stepper = make("div", { className: "stepper", aria: { role: "group", label: "applications of the network" } });
    const buttons = {};
    for (const [name, text, label, act] of [
      ["first", "|◀\uFE0E", "Back to the puzzle", () => { stop(); shown = 0; show(); }],
      ["back", "◀\uFE0E", "One application back", () => { stop(); shown = Math.max(0, shown - 1); show(); }],
      ["play", "▶\uFE0E Play", "Play", () => (timer ? halt() : whole(() => { if (ended()) shown = 0; play(TEMPO); }))],
      ["next", "▶\uFE0E", "Apply the network once", () => whole(next)],
      ["last", "▶\uFE0E|", "Apply the network until it is done", () => whole(() => play(0))],
    ]) {
      buttons[name] = make("button", { type: "button", id: `sudoku-${name}`, textContent: text, onclick: act, aria: { label } });
      stepper.append(buttons[name]);
    }

    function stop() {
      clearTimeout(timer);
      timer = 0;
    }

    function halt() {
      stop();
      show();
    }

    /* The puzzle has changed: nothing that was answered holds any longer. */
    function edited() {
      stop();
      [answers, source, shown, remark] = [[], null, 0, ""];
      problem.textContent = contradiction(puzzle);
      show();
    }

    function enter(text) {
      try {
        puzzle = parse(text);
      } catch (error) {
        problem.textContent = error.message;
        return false;
      }
      edited();
      return true;
    }

    /* Go on only with a puzzle that can be solved; say what is wrong with any other. */
    function whole(action) {
      stop();
      problem.textContent = "";
      try {
        if (!source) {
          remark = check(puzzle);
          source = root.MSENetwork.run(net, tokensOf(puzzle, lines), SIDE, steps);
        }
      } catch (error) {
        problem.textContent = error.message;
        return show();
      }
      action();
    }

    const ended = () => shown === steps || (shown > 0 && obeys(answers[shown - 1].digits));

    function advance() {
      if (shown === steps) return;
      if (shown === answers.length) answers.push(read(source.next().value, net.config.out_classes, puzzle, lines));
      shown++;
    }

    function next() {
      advance();
      show();
    }

    function play(tempo) {
      const tick = () => {
        if (!stepper.isConnected) return; // another network was chosen
        if (!ended()) advance();
        if (ended()) stop();
        else timer = setTimeout(tick, tempo);
        show();
      };
      timer = setTimeout(tick, 0);
      show();
    }

    function show() {
      const { digits, confidence } = shown ? answers[shown - 1] : { digits: puzzle, confidence: puzzle.map(() => 1) };
      const bad = new Set(clashes(digits));
      const badGivens = new Set(clashes(puzzle));
      CELLS.forEach((i) => {
        inputs[i].value = puzzle[i] || "";
        inputs[i].className = `${edges(i)} ${puzzle[i] ? "given" : ""} ${badGivens.has(i) ? "clash" : ""}`;
        inputs[i].setAttribute("aria-invalid", badGivens.has(i));
        const mark = puzzle[i] || !digits[i] || confidence[i] >= SURE ? "" : confidence[i] >= LIKELY ? "?" : "??";
        const bar = make("i", { aria: { hidden: true } });
        if (!puzzle[i] && digits[i]) bar.style.width = `${Math.round(100 * confidence[i])}%`;
        cells[i].className = `${edges(i)} ${puzzle[i] ? "given" : ""} ${bad.has(i) ? "clash" : ""}`;
        cells[i].replaceChildren(...(digits[i] ? [`${digits[i]}`, make("small", { textContent: mark }), bar] : []));
        const said = !digits[i] ? "empty" : puzzle[i] ? `${digits[i]}, given` : `${digits[i]}, ${Math.round(100 * confidence[i])} % sure`;
        cells[i].title = `${place(i)}: ${said}${bad.has(i) ? ", repeats a digit" : ""}`;
        cells[i].setAttribute("aria-label", cells[i].title);
      });
      const empty = CELLS.filter((i) => !puzzle[i]);
      const sure = empty.filter((i) => confidence[i] >= SURE).length;
      status.textContent = shown
        ? `application ${shown} of ${steps}: ${sure} of ${empty.length} empty cells sure`
        : `${81 - empty.length} givens, ${empty.length} cells to fill`;
      if (timer || !shown) verdict.textContent = timer ? "working …" : "";
      else if (!bad.size) verdict.textContent = `${remark}✓ Solved after ${shown} ${shown > 1 ? "applications" : "application"}: every row, column and box holds the digits 1-9, and the givens are kept.`;
      else verdict.textContent = `${remark}✗ Not solved ${shown < steps ? "yet" : `after ${steps} applications`}: ${bad.size} cells repeat a digit of their row, column or box (framed with dashes).`;
      buttons.first.disabled = buttons.back.disabled = !shown;
      buttons.next.disabled = shown === steps;
      buttons.play.textContent = timer ? "❚❚ Pause" : "▶\uFE0E Play";
      buttons.play.setAttribute("aria-label", timer ? "Pause" : "Play");
    }

    const text = make("textarea", { id: "sudoku-text", rows: 2, spellcheck: false, autocomplete: "off", placeholder: "53..7....6..195....98....6. and so on" });
    const form = make("form", { className: "sudoku-paste" },
      make("label", { htmlFor: "sudoku-text", textContent: "Or paste 81 characters, row by row, with 0 or . for an empty cell." }), text,
      make("button", { type: "submit", textContent: "Use it" }));
    form.addEventListener("submit", (event) => { event.preventDefault(); if (enter(text.value)) text.value = ""; });
    const titled = (title, board) => make("div", {}, make("h3", { textContent: title }), board);
    body.append(
      make("div", { className: "demo-row" }, stepper,
        make("button", { type: "button", id: "sudoku-example", textContent: "Another example", onclick: () => enter(EXAMPLES[++example % EXAMPLES.length]) }),
        make("button", { type: "button", id: "sudoku-clear", textContent: "Empty board", onclick: () => enter("0".repeat(81)) })),
      problem,
      make("div", { className: "demo-boards" },
        titled("your puzzle", make("div", { className: "board sudoku", id: "sudoku-puzzle", aria: { role: "group", label: "your puzzle; arrow keys move between the cells" } }, ...rowsOf(inputs))),
        titled("the network's answer", make("div", { className: "board sudoku", id: "sudoku-answer", aria: { role: "table", label: "the network's answer" } }, ...rowsOf(cells, "row")))),
      status, verdict,
      make("p", { className: "hint", textContent: "Bold on a tint: given, never overwritten. The bar under a digit is the network's confidence: plain from 90 %, ? from 50 %, ?? below. Dashes: repeats a digit. Keys in your puzzle: digits, arrows, Enter applies the network." }),
      form);
    show();
  }

  root.MSESudoku = { ...logic, panel };
})(typeof self !== "undefined" ? self : this);
