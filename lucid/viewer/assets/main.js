"use strict";
// The page: it decodes the data, makes the panes, and passes selections from one to all others.

class App {
  constructor(data) {
    this.data = data;
    this.files = data.files;
    this.programs = data.programs.map((program, i) => new Program(program, i, data.files));
    this.program = this.programs[0];
    this.links = new Links();
    this.selection = null;
    this.mode = "0";
    this.tabName = "stages";
    document.getElementById("title").textContent = data.title;
    this.drawings = [];
    this.source = new SourcePane(this);
    this.stages = new StagesPane(this);
    this.kernels = new KernelsPane(this);
    this.memory = new MemoryPane(this);
    this.makeTabs();
    this.makeModes();
    this.makeSplitters();
    this.makeSearch();
    this.setMode("0");
    document.addEventListener("keydown", (e) => {
      if (e.key === "Escape") { this.select(null); document.getElementById("search").blur(); }
      if (e.key === "/" && document.activeElement.tagName !== "INPUT") { e.preventDefault(); document.getElementById("search").focus(); }
    });
  }

  // What is shown

  makeModes() {
    const names = this.programs.map((program, i) => [String(i), i === 0 && this.programs.length > 1 ? "forward" : program.title]);
    if (this.programs.length > 1) names.push(["both", "side by side"]);
    else names.length = 0;
    document.getElementById("modes").replaceChildren(...names.map(([mode, text]) => make("button", { "data-mode": mode, onclick: () => this.setMode(mode) }, text)));
  }

  setMode(mode) {
    if (mode !== this.mode) this.kernels.chosen = -1;
    this.mode = mode;
    document.body.classList.toggle("both", mode === "both");
    for (const button of document.querySelectorAll("#modes button")) button.setAttribute("aria-selected", button.dataset.mode === mode);
    const shown = mode === "both" ? this.programs : [this.programs[Number(mode)]];
    this.drawings = [];
    for (const program of this.programs) this.links.clear("graph" + program.number);
    for (const program of shown) this.drawings.push(new Drawing(this, program));
    document.getElementById("canvases").replaceChildren(...this.drawings.map((drawing) => drawing.element));
    for (const drawing of this.drawings) drawing.fit();
    this.setProgram(mode === "both" ? this.program : shown[0], true);
  }

  setProgram(program, always = false) {
    if (program === this.program && !always) return;
    this.program = program;
    const facts = document.getElementById("facts");
    const number = (n, what) => [make("b", {}, n.toLocaleString("en")), " " + what + "   "];
    facts.replaceChildren(...number(program.traced.rows.length, "equations"), ...number(program.instructions.length, "instructions"), ...number(program.kernels.length, "kernels"), ...(program.runs ? [make("b", {}, time(program.total))] : []));
    this.status();
    this.showTab(this.tabName, true);
  }

  makeTabs() {
    const names = [["stages", "Stages"], ["kernels", "Kernels"], ["memory", "Memory"]];
    document.getElementById("tabs").replaceChildren(...names.map(([name, text]) => make("button", { "data-tab": name, onclick: () => this.showTab(name) }, text)));
    const narrow = [["source", "Source"], ["graph", "Graph"], ...names];
    document.getElementById("narrow").replaceChildren(...narrow.map(([name, text]) => make("button", { "data-narrow": name, onclick: () => this.showPane(name) }, text)));
    this.showPane("graph");
  }

  /** On a narrow screen one pane is shown at a time. */
  showPane(name) {
    const pane = ["stages", "kernels", "memory"].includes(name) ? "details" : name;
    for (const element of document.querySelectorAll(".pane")) element.classList.toggle("on", element.id === pane);
    for (const button of document.querySelectorAll("#narrow button")) button.setAttribute("aria-selected", button.dataset.narrow === name);
    if (pane === "details" && this.stages) this.showTab(name);
  }

  showTab(name, always = false) {
    if (name === this.tabName && !always && this.shown === this.program) return;
    this.tabName = name;
    this.shown = this.program;
    for (const tab of document.querySelectorAll(".tab")) tab.classList.toggle("on", tab.id === name);
    for (const button of document.querySelectorAll("#tabs button")) button.setAttribute("aria-selected", button.dataset.tab === name);
    for (const other of ["stages", "kernels", "memory"]) if (other !== name) this.links.clear(other);
    if (name !== "kernels") this.links.clear("lines");
    this[name].show();
    if (this.selection) this[name].reveal(this.originsIn(this.program), this.selection.instruction);
  }

  makeSplitters() {
    for (const splitter of document.querySelectorAll(".splitter")) splitter.addEventListener("pointerdown", (e) => {
      splitter.setPointerCapture(e.pointerId);
      const name = splitter.dataset.left || splitter.dataset.right, pane = document.getElementById(name);
      const start = e.clientX, width = pane.getBoundingClientRect().width, sign = splitter.dataset.left ? 1 : -1;
      const move = (m) => { pane.style.width = Math.max(120, width + sign * (m.clientX - start)) + "px"; };
      splitter.addEventListener("pointermove", move);
      splitter.addEventListener("pointerup", () => splitter.removeEventListener("pointermove", move), { once: true });
    });
  }

  // Selection: traced equations of one program; other programs are marked through the derivative

  select(program, origins = [], from = "", instruction = undefined) {
    this.selection = program && origins.length ? { program, origins, instruction } : null;
    if (program && program !== this.program && this.mode === "both") this.setProgram(program);
    this.refresh();
    if (!this.selection) { this.kernels.body.classList.remove("marked"); return; }
    if (from !== "source") { const line = [...this.markedLines()][0]; if (line) this.source.reveal(line); }
    for (const drawing of this.drawings) if (from !== "graph" || drawing.program !== program) drawing.reveal(this.originsIn(drawing.program));
    if (from !== this.tabName) this[this.tabName].reveal(this.originsIn(this.program), instruction, from);
    else if (this.tabName === "kernels") this.kernels.reveal(origins, instruction, from);
  }

  /** Mark the selection again after a pane has changed its text. */
  reselect() {
    this.refresh();
    if (this.selection) this[this.tabName].reveal(this.originsIn(this.program), this.selection.instruction);
  }

  selectLine(key) {
    const program = this.program.byLine.has(key) ? this.program : this.programs.find((p) => p.byLine.has(key));
    if (program) this.select(program, program.byLine.get(key), "source");
  }

  hoverLine(key) { if (this.program.byLine.has(key)) this.hover(this.program, this.program.byLine.get(key)); }

  /** The selected equations as equations of another program. */
  translate(from, origins, to) {
    if (from === to) return origins;
    const chosen = new Set(origins);
    if (from.number > to.number) return [...new Set(origins.map((origin) => from.forward[origin]).filter((origin) => origin !== undefined))];
    return Object.entries(to.forward).filter(([, origin]) => chosen.has(origin)).map(([origin]) => Number(origin));
  }

  originsIn(program) { return this.selection ? this.translate(this.selection.program, this.selection.origins, program) : []; }

  elementsOf(program, origins) {
    const found = this.links.find(program.number, origins);
    for (const key of program.linesOf(origins)) if (this.source.lines.has(key)) found.add(this.source.lines.get(key));
    return found;
  }

  markedLines() {
    const { program, origins } = this.selection;
    return [...program.linesOf(origins)].sort().map((key) => this.source.lines.get(key)).filter(Boolean);
  }

  refresh() {
    if (!this.source) return;
    const { selection } = this;
    this.links.mark("selected", selection ? this.elementsOf(selection.program, selection.origins) : []);
    const related = new Set();
    if (selection) for (const other of this.programs) if (other !== selection.program) for (const element of this.links.find(other.number, this.originsIn(other))) related.add(element);
    this.links.mark("related", related);
    this.markFound();
    this.status();
  }

  hover(program, origins = []) {
    if (!this.source) return;
    this.links.mark("hover", program && origins.length < 400 ? this.elementsOf(program, origins) : []);
  }

  status() {
    const status = document.getElementById("status");
    if (!this.selection) {
      const hint = this.program.note || "Click an equation, a line, a kernel or a buffer: the same thing is marked everywhere.";
      status.replaceChildren(hint);
      return;
    }
    const { program, origins } = this.selection;
    const rows = origins.map((origin) => program.rows[program.rowOfOrigin.get(origin)]).filter(Boolean);
    const parts = [];
    if (rows.length === 1) parts.push(make("b", {}, left(rows[0]) + " = " + right(rows[0])), make("span", {}, program.place(rows[0])), make("span", {}, program.scopePath(rows[0].scope)));
    else parts.push(make("b", {}, rows.length + " equations"), make("span", {}, [...new Set(rows.map((row) => program.place(row)))].slice(0, 4).join(", ")));
    const instructions = new Set(origins.flatMap((origin) => program.instructionsOf.get(origin) || []));
    const heat = program.heatOf(origins);
    if (heat) parts.push(make("span", {}, "about " + time(heat) + " (" + ((100 * heat) / program.total).toFixed(1) + " %)"));
    parts.push(make("span", {}, instructions.size ? "instruction " + [...instructions].slice(0, 6).join(", ") : "no instruction of its own: a view, a constant, or simplified away"));
    status.replaceChildren(...parts);
  }

  // Search

  makeSearch() {
    const input = document.getElementById("search");
    this.found = [];
    this.at = -1;
    input.addEventListener("input", () => this.search(input.value));
    input.addEventListener("keydown", (e) => {
      if (e.key !== "Enter" || !this.found.length) return;
      this.at = (this.at + (e.shiftKey ? this.found.length - 1 : 1)) % this.found.length;
      this.select(this.program, [this.found[this.at]], "search");
      document.getElementById("hits").textContent = this.at + 1 + " of " + this.found.length;
    });
  }

  search(text) {
    const words = text.trim().toLowerCase().split(/\s+/).filter(Boolean);
    this.query = words;
    this.found = [];
    this.at = -1;
    if (words.length) for (const [origin, r] of this.program.rowOfOrigin) {
      const hay = this.program.haystack(r);
      if (words.every((word) => hay.includes(word))) this.found.push(origin);
    }
    document.getElementById("hits").textContent = words.length ? this.found.length + " found" : "";
    this.markFound();
    if (this.found.length) {
      for (const drawing of this.drawings) if (drawing.program === this.program) drawing.reveal(this.found);
      if (this.tabName !== "kernels") this[this.tabName].reveal(this.found);
    }
  }

  markFound() { this.links.mark("found", this.found && this.found.length ? this.elementsOf(this.program, this.found) : []); }
}

decode(document.getElementById("data").textContent).then((data) => {
  window.lucid = new App(data);
  document.body.dataset.ready = "yes";
}).catch((error) => {
  document.getElementById("status").textContent = "This page could not be read: " + error.message;
  throw error;
});
