"use strict";
// The panes of text: source, stages with differences, instructions with kernels, and memory.

class SourcePane {
  constructor(app) {
    this.app = app;
    this.lines = new Map(); // "file:line" -> element
    const body = document.getElementById("source-body");
    const { files, programs } = app;
    if (!files.length) body.append(make("div", { class: "empty" }, "The lines of these equations are not known: the Graph was parsed, or the source is gone."));
    const heat = new Map();
    for (const program of programs) for (const [key, origins] of program.byLine) heat.set(key, Math.max(heat.get(key) || 0, program.total ? program.heatOf(origins) / program.total : 0));
    files.forEach((file, f) => {
      if (files.length > 1) body.append(make("div", { class: "section" }, file.name));
      file.lines.forEach((text, i) => {
        const number = file.first + i, key = f + ":" + number;
        const used = programs.some((program) => program.byLine.has(key));
        const share = heat.get(key) || 0;
        const line = make("div", { class: "line" + (used ? "" : " plain"), "data-line": number },
          make("span", { class: "no" }, String(number)), heatBar(share), make("span", { class: "text" }, ...python(text)));
        if (used) {
          line.addEventListener("click", () => app.selectLine(key));
          line.addEventListener("pointerenter", () => app.hoverLine(key));
          line.addEventListener("pointerleave", () => app.hover(null));
          this.lines.set(key, line);
        }
        body.append(line);
      });
    });
    document.getElementById("source-files").textContent = files.map((file) => file.name).join(", ");
    const first = [...this.lines.values()][0];
    if (first) this.reveal(first);
  }
  reveal(line) { show(line, document.getElementById("source-body")); }
}

function heatBar(share) {
  const bar = make("span", { class: "heat", title: share ? (100 * share).toFixed(1) + " % of the time" : "" });
  if (share > 0.001) bar.append(make("i", { style: `width: ${Math.max(2, 28 * Math.sqrt(share))}px; opacity: ${0.35 + 0.65 * Math.sqrt(share)}` }));
  return bar;
}

/** Scroll an element into the middle of its pane, unless it is visible. */
function show(element, pane) {
  const a = element.getBoundingClientRect(), b = pane.getBoundingClientRect();
  if (a.top < b.top + 8 || a.bottom > b.bottom - 8) pane.scrollTop += a.top - b.top - b.height / 3;
}

const WORDS = /("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(#.*$)|\b(def|class|return|if|elif|else|for|while|in|is|not|and|or|with|as|import|from|lambda|yield|try|except|finally|raise|None|True|False|self|pass|assert|range)\b|(\b\d[\w.]*\b)/g;

/** A line of Python as spans. */
function python(text) {
  const out = [];
  let at = 0;
  for (const match of text.matchAll(WORDS)) {
    if (match.index > at) out.push(text.slice(at, match.index));
    const kind = match[1] ? "s" : match[2] ? "c" : match[3] ? "k" : "n";
    out.push(make("span", { class: kind }, match[0]));
    at = match.index + match[0].length;
  }
  if (at < text.length || !out.length) out.push(text.slice(at) || "\u200b");
  return out;
}

class StagesPane {
  constructor(app) {
    this.app = app;
    this.list = document.getElementById("stage-list");
    this.body = document.getElementById("stage-body");
    this.stage = 0;
    this.diff = true;
    this.fold = false;
  }

  /** Rows that a stage has and the one before has not, and the other way around. */
  change(number) {
    if (!number) return { added: 0, removed: 0 };
    const { stages } = this.app.program;
    const before = new Set(stages[number - 1].rows), now = new Set(stages[number].rows);
    return { added: [...now].filter((r) => !before.has(r)).length, removed: [...before].filter((r) => !now.has(r)).length };
  }

  show() {
    const { program } = this.app;
    this.stage = Math.min(this.stage, program.stages.length - 1);
    this.list.replaceChildren(...program.stages.map((stage, i) => {
      const { added, removed } = this.change(i);
      const same = i > 0 && !added && !removed;
      return make("button", { "data-stage": stage.name, class: same ? "same" : "", "aria-selected": i === this.stage, title: same ? "changes nothing" : stage.rows.length + " equations",
        onclick: () => { this.stage = i; this.show(); } }, stage.name.replaceAll("_", " "),
        i === 0 ? make("small", {}, String(stage.rows.length)) : null,
        added ? make("small", { class: "plus" }, "+" + added) : null, removed ? make("small", { class: "minus" }, "−" + removed) : null);
    }), make("label", { title: "Show what the stage changed" }, make("input", { type: "checkbox", id: "diff", checked: this.diff ? "" : null, onchange: (e) => { this.diff = e.target.checked; this.show(); } }), "diff"),
      make("label", { title: "Show the equations of a scope as one line" }, make("input", { type: "checkbox", id: "fold", checked: this.fold ? "" : null, onchange: (e) => { this.fold = e.target.checked; this.show(); } }), "fold"));
    this.app.links.clear("stages");
    const stage = program.stages[this.stage];
    this.body.replaceChildren();
    this.body.scrollTop = 0;
    if (!this.stage || !this.diff) {
      this.section(stage, "");
      for (const [label, body] of this.bodiesOf(stage)) this.section(body, label);
    } else {
      this.difference(program.stages[this.stage - 1], stage);
    }
    this.app.refresh();
  }

  bodiesOf(stage) {
    const { program } = this.app;
    const found = new Map();
    const visit = (rows) => { for (const r of rows) for (const label of program.rows[r].bodies || []) if (!found.has(label)) { found.set(label, program.bodies[label]); visit(program.bodies[label].rows); } };
    visit(stage.rows);
    return found;
  }

  section(stage, label) {
    this.measure(stage.rows);
    if (label) this.body.append(make("div", { class: "section" }, label + " takes " + stage.inputs.map((input) => input.join(": ")).join(", ")));
    this.body.append(...(this.fold ? this.folded(stage.rows, 0) : stage.rows.map((r) => this.line(r, ""))), this.returns(stage));
  }

  /** Rows, where each run in one scope is a line that unfolds to the scopes inside it. */
  folded(rows, level) {
    const { program } = this.app, out = [];
    let run = [], at = -1;
    const flush = () => { out.push(...(run.length > 1 ? [this.scope(run, at, level)] : run.map((r) => this.line(r, "")))); run = []; };
    for (const r of rows) {
      const scope = program.scopeChain(program.rows[r].scope)[level] ?? -1;
      if (scope !== at) { flush(); at = scope; }
      if (scope < 0) out.push(this.line(r, "")); else run.push(r);
    }
    flush();
    return out;
  }

  scope(rows, scope, level) {
    const { program, links } = this.app, origins = program.originsOf(rows);
    const share = program.total ? program.heatOf(origins) / program.total : 0;
    const [label, kind] = program.scopes[scope];
    const line = make("div", { class: "line scope", "data-scope": label }, make("span", { class: "sign" }, "▸"), heatBar(share),
      make("span", { class: "text" }, make("span", { class: "o" }, label), kind ? " " + kind : "", make("span", { class: "c" }, "  " + rows.length + " equations")));
    line.addEventListener("click", () => { line.replaceWith(...this.folded(rows, level + 1)); this.app.refresh(); });
    line.addEventListener("pointerenter", () => this.app.hover(program, origins));
    line.addEventListener("pointerleave", () => this.app.hover(null));
    links.add("stages", program.number, origins, line);
    return line;
  }

  returns(stage) {
    const more = stage.returns.length > 12 ? ", … " + (stage.returns.length - 12) + " more" : "";
    return make("div", { class: "line plain" }, make("span", { class: "sign" }), make("span", { class: "heat" }), make("span", { class: "text" }, make("span", { class: "k" }, "return "), stage.returns.slice(0, 12).join(", ") + more));
  }

  measure(rows) {
    const table = this.app.program.rows;
    this.left = Math.min(34, Math.max(0, ...rows.map((r) => left(table[r]).length)));
    this.right = Math.min(52, Math.max(0, ...rows.map((r) => right(table[r]).length)));
  }

  line(r, sign) {
    const { program, links } = this.app;
    const row = program.rows[r];
    const text = make("span", { class: "text" });
    row.out.forEach(([name, type], i) => text.append(i ? ", " : "", make("span", { class: "v" }, name), ": ", make("span", { class: "t" }, type)));
    text.append(" ".repeat(Math.max(0, this.left - left(row).length)) + " = ", make("span", { class: "o" }, row.op), make("span", { class: "q" }, row.with));
    for (const name of row.in) text.append(" ", make("span", { class: /^[-\d(]|^(inf|nan|True|False)/.test(name) ? "n" : "v" }, name));
    const note = [program.place(row), program.scopePath(row.scope)].filter(Boolean).join("  ");
    if (note) text.append(make("span", { class: "c" }, " ".repeat(Math.max(2, this.right - right(row).length + 2)) + "# " + note));
    const share = program.total ? program.heatOf(row.from) / program.total : 0;
    const kind = sign === "+" ? " add" : sign === "−" ? " cut" : "";
    const line = make("div", { class: "line" + kind, "data-row": r }, make("span", { class: "sign" }, sign), heatBar(share), text);
    if (row.from.length) {
      line.addEventListener("click", () => this.app.select(program, row.from, "stages"));
      line.addEventListener("pointerenter", () => this.app.hover(program, row.from));
      line.addEventListener("pointerleave", () => this.app.hover(null));
      links.add("stages", program.number, row.from, line);
    }
    return line;
  }

  difference(before, now) {
    const script = compare(before.rows, now.rows);
    this.measure([...before.rows, ...now.rows]);
    let same = [];
    const flush = (last) => {
      const edge = 3, rows = same;
      same = [];
      const first = this.body.childElementCount === 0;
      if (rows.length <= 2 * edge + 2) { this.body.append(...rows.map((r) => this.line(r, ""))); return; }
      const head = first ? 0 : edge, tail = last ? 0 : edge;
      const hidden = rows.slice(head, rows.length - tail);
      this.body.append(...rows.slice(0, head).map((r) => this.line(r, "")));
      const gap = make("div", { class: "gap" }, "··· " + hidden.length + " unchanged equations");
      gap.addEventListener("click", () => { gap.replaceWith(...hidden.map((r) => this.line(r, ""))); this.app.refresh(); });
      this.body.append(gap, ...rows.slice(rows.length - tail).map((r) => this.line(r, "")));
    };
    for (const [sign, r] of script) {
      if (!sign) { same.push(r); continue; }
      flush(false);
      this.body.append(this.line(r, sign));
    }
    if (!script.some(([sign]) => sign)) this.body.append(make("div", { class: "empty" }, "This stage changes nothing here."));
    flush(true);
    this.body.append(this.returns(now));
  }

  reveal(origins) {
    const element = [...this.app.links.find(this.app.program.number, origins)].find((e) => this.body.contains(e));
    if (element) show(element, this.body);
  }
}

function left(row) { return row.out.map((out) => out.join(": ")).join(", "); }
function right(row) { return row.op + row.with + " " + row.in.join(" "); }

/** The difference of two lists of distinct numbers: [sign, number], by the longest common order. */
function compare(before, now) {
  const place = new Map(before.map((r, i) => [r, i]));
  const tails = [], previous = new Map(); // patience: the longest increasing run of places
  for (const r of now) {
    if (!place.has(r)) continue;
    let low = 0, high = tails.length;
    while (low < high) { const middle = (low + high) >> 1; if (place.get(tails[middle]) < place.get(r)) low = middle + 1; else high = middle; }
    previous.set(r, low ? tails[low - 1] : null);
    tails[low] = r;
  }
  const common = new Set();
  for (let r = tails[tails.length - 1] ?? null; r !== null; r = previous.get(r)) common.add(r);
  const out = [];
  let added = [], i = 0;
  const flush = (end) => { // what is removed stands before what is added
    while (i < before.length && before[i] !== end) out.push(["−", before[i++]]);
    out.push(...added.map((r) => ["+", r]));
    added = [];
  };
  for (const r of now) {
    if (!common.has(r)) { added.push(r); continue; }
    flush(r);
    out.push(["", r]);
    i++;
  }
  flush(null);
  return out;
}

class KernelsPane {
  constructor(app) {
    this.app = app;
    this.list = document.getElementById("instruction-list");
    this.head = document.getElementById("kernel-head");
    this.body = document.getElementById("kernel-body");
    this.slowest = false;
    this.form = "listing";
    this.chosen = -1;
  }

  show() {
    const { program, links } = this.app;
    links.clear("kernels");
    const order = program.instructions.map((_, i) => i);
    if (this.slowest) order.sort((a, b) => program.instructions[b].ns - program.instructions[a].ns);
    const most = Math.max(1, ...program.instructions.map((i) => i.ns));
    const toggle = (text, value) => make("button", { "aria-selected": this.slowest === value, onclick: () => { this.slowest = value; this.show(); } }, text);
    const measured = program.runs ? time(program.total) + " a call, mean of " + program.runs : "not measured";
    document.getElementById("order").replaceChildren(make("span", {}, program.instructions.length + " instructions · " + measured), toggle("in order", false), toggle("slowest first", true));
    this.list.replaceChildren();
    for (const i of order) {
      const instruction = program.instructions[i];
      const size = [instruction.bytes ? bytes(instruction.bytes) : "", instruction.rows.length > 1 ? instruction.rows.length + " equations" : ""].filter(Boolean).join(" · ");
      const line = make("div", { class: "instruction", "data-instruction": i, title: instruction.label },
        make("span", { class: "bar" }, make("i", { style: `width: ${(100 * instruction.ns) / most}%` })), make("span", { class: "time" }, program.runs ? time(instruction.ns) : ""),
        make("span", { class: "what" }, instruction.label), make("span", { class: "size" }, size));
      line.addEventListener("click", () => { this.choose(i); if (instruction.origins.length) this.app.select(program, instruction.origins, "kernels", i); });
      line.addEventListener("pointerenter", () => this.app.hover(program, instruction.origins));
      line.addEventListener("pointerleave", () => this.app.hover(null));
      links.add("kernels", program.number, instruction.origins, line);
      this.list.append(line);
    }
    const slow = program.instructions.findIndex((instruction) => instruction.ns === most);
    this.choose(this.chosen < 0 || this.chosen >= program.instructions.length ? slow : this.chosen);
    this.app.refresh();
  }

  choose(i) {
    this.chosen = Math.max(0, i);
    const { program } = this.app;
    const instruction = program.instructions[this.chosen];
    this.head.replaceChildren();
    this.body.replaceChildren();
    this.body.classList.remove("marked");
    this.app.links.clear("lines");
    if (!instruction) { this.body.append(make("div", { class: "empty" }, "Nothing is computed.")); return; }
    const kernels = instruction.kernels.map((k) => program.kernels[k]);
    const forms = ["listing", "llvm", "assembly"];
    this.head.append(make("span", { class: "name" }, instruction.label + (kernels.length ? "  " + kernels[0].name.slice(0, 9) : "")),
      make("div", { class: "segment" }, ...forms.map((form) => make("button", { "data-form": form, "aria-selected": form === this.form, onclick: () => { this.form = form; this.choose(this.chosen); this.app.reselect(); } }, { listing: "Listing", llvm: "LLVM", assembly: "Assembly" }[form]))));
    if (!kernels.length) {
      const what = instruction.label.startsWith("numpy") ? "NumPy computes this equation: there is no native code for it." : "This instruction calls a library (BLAS, LAPACK, or a routine of the runtime): no kernel is compiled for it.";
      this.body.append(make("div", { class: "empty" }, what));
    }
    kernels.forEach((kernel, k) => {
      const text = kernel[this.form];
      if (kernels.length > 1) this.body.append(make("div", { class: "section" }, kernel.label));
      if (!text) { this.body.append(make("div", { class: "empty" }, "A routine of the runtime, written as LLVM: it has no listing.")); return; }
      const lines = text.split("\n"), origins = program.originsOfLines(instruction, k, this.form, lines.length);
      this.body.append(...lines.map((line, n) => this.line(line, n + 1, origins[n] || [])));
    });
    this.body.scrollTop = 0;
  }

  /** A line of a kernel's text, linked to the equations that it computes. */
  line(text, number, origins) {
    const { program, links } = this.app, at = this.chosen;
    const line = make("div", { class: "line" + (origins.length ? "" : " plain"), "data-line": number },
      make("span", { class: "no" }, String(number)), make("span", { class: "text" }, ...(this.form === "listing" ? python(text) : machine(text))));
    if (!origins.length) return line;
    line.addEventListener("click", () => this.app.select(program, origins, "lines", at));
    line.addEventListener("pointerenter", () => this.app.hover(program, origins));
    line.addEventListener("pointerleave", () => this.app.hover(null));
    if (!/^\s*for /.test(text)) links.add("lines", program.number, origins, line); // a loop has all of its body
    return line;
  }

  /** Scroll to the first line of the kernel that belongs to the selected equations. */
  revealLine(origins) {
    const { links, program } = this.app;
    const element = [...links.find(program.number, origins)].find((e) => this.body.contains(e));
    if (element) show(element, this.body);
  }

  reveal(origins, instruction, from) {
    const { program } = this.app;
    const found = instruction ?? origins.flatMap((origin) => program.instructionsOf.get(origin) || [])[0];
    if (found === undefined) { this.body.classList.remove("marked"); return; }
    if (found !== this.chosen) { this.choose(found); this.app.refresh(); }
    this.body.classList.add("marked");
    const line = this.list.querySelector(`[data-instruction="${found}"]`);
    if (line) show(line, this.list);
    if (from !== "lines") this.revealLine(origins);
  }
}

/** A line of LLVM or assembly as spans: its comment is faint, its first word stands out. */
function machine(text) {
  const cut = text.search(/[;#]/);
  const code = cut < 0 ? text : text.slice(0, cut), note = cut < 0 ? "" : text.slice(cut);
  const match = code.match(/^(\s+(?:%[\w.]+ = )?)([a-z][\w.]*)(.*)$/);
  const out = match ? [match[1], make("span", { class: "k" }, match[2]), match[3]] : [code || "\u200b"];
  if (note) out.push(make("span", { class: "c" }, note));
  return out;
}

class MemoryPane {
  constructor(app) {
    this.app = app;
    this.body = document.getElementById("memory-body");
  }

  show() {
    const { program, links } = this.app;
    links.clear("memory");
    this.body.replaceChildren();
    this.charts = [];
    for (const arena of program.memory) this.chart(program, arena);
    if (!program.memory.length) this.body.append(make("div", { class: "empty" }, "No plan: NumPy computes this program."));
    this.app.refresh();
  }

  chart(program, arena) {
    const { links } = this.app;
    const planned = arena.buffers.reduce((sum, buffer) => sum + buffer[3], 0);
    const intro = make("p", {}, make("b", {}, bytes(arena.bytes)), ` of arena hold ${arena.buffers.length} buffers of ${bytes(planned)} in ${arena.steps} steps. A rectangle is a buffer: its place from top to bottom, its life from left to right.`);
    const width = 460, height = Math.min(420, 90 + 9 * arena.buffers.length), margin = { left: 56, top: 14, bottom: 20 };
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}` });
    const across = (step) => margin.left + ((width - margin.left - 6) * step) / Math.max(1, arena.steps);
    const down = (offset) => margin.top + ((height - margin.top - margin.bottom) * offset) / Math.max(1, arena.bytes);
    const now = make("rect", { class: "now", y: margin.top, height: height - margin.top - margin.bottom, width: 0 });
    svg.append(now);
    for (let i = 0; i <= 4; i++) {
      const offset = (arena.bytes * i) / 4;
      svg.append(make("line", { class: "grid", x1: margin.left, x2: width - 6, y1: down(offset), y2: down(offset) }),
        make("text", { class: "axis", x: margin.left - 6, y: down(offset) + 3.5, "text-anchor": "end" }, bytes(Math.round(offset))));
    }
    svg.append(make("text", { class: "axis", x: margin.left, y: height - 6 }, "step 0"), make("text", { class: "axis", x: width - 6, y: height - 6, "text-anchor": "end" }, "step " + arena.steps));
    for (const [name, rows, offset, size, first, last] of arena.buffers) {
      const origins = program.originsOf(rows);
      const row = program.rows[rows[0]], x = across(first), y = down(offset);
      const wide = Math.max(2, across(Math.min(last + 1, arena.steps)) - x), high = Math.max(1.2, down(offset + size) - y);
      const what = row ? `${left(row)} = ${row.op}` : name;
      const rect = make("rect", { class: "buffer", x, width: wide, y, height: high, rx: 1.5, "data-buffer": name },
        make("title", {}, `${what}: ${bytes(size)} at ${offset}, steps ${first} to ${last}${row ? "  " + program.place(row) : ""}`));
      rect.addEventListener("click", () => origins.length && this.app.select(program, origins, "memory"));
      rect.addEventListener("pointerenter", () => this.app.hover(program, origins));
      rect.addEventListener("pointerleave", () => this.app.hover(null));
      links.add("memory", program.number, origins, rect);
      svg.append(rect);
      const label = row && [`${row.op} ${name}`, row.op, name].find((text) => 4.4 * text.length < wide - 3);
      if (label && high > 9) svg.append(make("text", { class: "label", x: x + wide / 2, y: y + high / 2 + 2.5, "text-anchor": "middle" }, label));
    }
    this.charts.push({ now, across });
    this.body.append(make("div", { class: "memory-chart" }, intro, svg));
  }

  reveal(origins) {
    const { program } = this.app;
    const instruction = program.instructions[origins.flatMap((origin) => program.instructionsOf.get(origin) || [])[0]];
    for (const { now, across } of this.charts || []) {
      const step = instruction && instruction.steps && instruction.steps[0];
      now.setAttribute("width", step === undefined ? 0 : Math.max(1, across(step + 1) - across(step)));
      if (step !== undefined) now.setAttribute("x", across(step));
    }
  }
}
