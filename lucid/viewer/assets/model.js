"use strict";
// The data of the page, and what links its panes: the numbers of traced equations ("origins").

const SVG = "http://www.w3.org/2000/svg";

/** Make an element; strings become text, so nothing of a program is ever parsed as HTML. */
function make(tag, attributes = {}, ...children) {
  const svg = ["svg", "g", "rect", "path", "text", "tspan", "line", "title", "defs", "marker"].includes(tag);
  const element = svg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") element.setAttribute("class", value);
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Decode base64 of deflated JSON. */
async function decode(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

function time(ns) {
  if (ns >= 1e9) return (ns / 1e9).toFixed(2) + " s";
  if (ns >= 1e6) return (ns / 1e6).toFixed(2) + " ms";
  if (ns >= 1e4) return Math.round(ns / 1e3) + " µs";
  return (ns / 1e3).toFixed(1) + " µs";
}

function bytes(n) {
  if (n >= 1 << 20) return (n / (1 << 20)).toFixed(1) + " MiB";
  if (n >= 1 << 10) return (n / (1 << 10)).toFixed(1) + " KiB";
  return n + " B";
}

/** One program of the page. */
class Program {
  constructor(data, number, files) {
    Object.assign(this, data);
    this.number = number;
    this.files = files;
    this.traced = this.stages[0];
    this.final = this.stages[this.stages.length - 1];
    this.total = this.instructions.reduce((sum, i) => sum + i.ns, 0);
    this.rowOfOrigin = new Map(); // origin -> traced row
    const visit = (rows) => {
      for (const r of rows) {
        for (const origin of this.rows[r].from) if (!this.rowOfOrigin.has(origin)) this.rowOfOrigin.set(origin, r);
        for (const body of this.rows[r].bodies || []) visit(this.bodies[body].rows);
      }
    };
    visit(this.traced.rows);
    this.heat = new Map(); // origin -> nanoseconds, an instruction's time in equal parts
    this.instructionsOf = new Map();
    this.instructions.forEach((instruction, i) => {
      instruction.origins = this.originsOf(instruction.rows);
      for (const origin of instruction.origins) {
        this.heat.set(origin, (this.heat.get(origin) || 0) + instruction.ns / instruction.origins.length);
        if (!this.instructionsOf.has(origin)) this.instructionsOf.set(origin, []);
        this.instructionsOf.get(origin).push(i);
      }
    });
    this.byLine = new Map(); // "file:line" -> origins
    for (const [origin, r] of this.rowOfOrigin) {
      const [file, line] = this.rows[r].at;
      if (file < 0) continue;
      const key = file + ":" + line;
      if (!this.byLine.has(key)) this.byLine.set(key, []);
      this.byLine.get(key).push(origin);
    }
  }

  /** The traced equations that rows come from, those of loop bodies inside them too. */
  originsOf(rows) {
    const found = new Set();
    const visit = (r) => {
      for (const origin of this.rows[r].from) found.add(origin);
      for (const body of this.rows[r].bodies || []) this.bodies[body].rows.forEach(visit);
    };
    rows.forEach(visit);
    return [...found];
  }

  /** The traced equations that each line of a kernel's text comes from, in one instruction. */
  originsOfLines(instruction, k, form, count) {
    const kernel = this.kernels[instruction.kernels[k]], values = instruction.values[k];
    const lines = kernel.values[form];
    if (!values.length) return Array(count).fill(instruction.origins); // a routine of one operation
    if (!lines) return Array(count).fill([]);
    const known = values.map((rows) => this.originsOf(rows));
    return lines.map((found) => [...new Set(found.flatMap((v) => known[v] || []))]);
  }

  heatOf(origins) {
    let sum = 0;
    for (const origin of origins) sum += this.heat.get(origin) || 0;
    return sum;
  }

  linesOf(origins) {
    const found = new Set();
    for (const origin of origins) {
      const r = this.rowOfOrigin.get(origin);
      if (r !== undefined && this.rows[r].at[0] >= 0) found.add(this.rows[r].at.join(":"));
    }
    return found;
  }

  scopePath(scope) {
    const parts = [];
    for (let s = scope; s >= 0; s = this.scopes[s][2]) parts.unshift(this.scopes[s][0]);
    return parts.join(" › ");
  }

  /** The scopes around a row, the outermost first. */
  scopeChain(scope) {
    const chain = [];
    for (let s = scope; s >= 0; s = this.scopes[s][2]) chain.unshift(s);
    return chain;
  }

  place(row) {
    const [file, line] = row.at;
    return file < 0 ? "" : this.files[file].name + ":" + line;
  }

  /** Everything a person may search for in a row, in one string. */
  haystack(r) {
    const row = this.rows[r];
    const names = row.out.flat().concat(row.in);
    return [row.op, row.op + row.with, ...names, this.place(row), this.scopePath(row.scope).replaceAll(" › ", ".")].join("\n").toLowerCase();
  }
}

/** Which elements of a pane show which origins, and their marks. */
class Links {
  constructor() {
    this.panes = new Map();
    this.marked = { selected: [], hover: [], found: [], related: [] };
  }
  clear(pane) { this.panes.set(pane, new Map()); }
  add(pane, program, origins, element) {
    const map = this.panes.get(pane);
    for (const origin of origins) {
      const key = program + "/" + origin;
      if (!map.has(key)) map.set(key, []);
      map.get(key).push(element);
    }
  }
  find(program, origins) {
    const found = new Set();
    for (const map of this.panes.values()) for (const origin of origins) {
      for (const element of map.get(program + "/" + origin) || []) found.add(element);
    }
    return found;
  }
  mark(kind, elements) {
    for (const element of this.marked[kind]) element.classList.remove(kind);
    this.marked[kind] = [...elements];
    for (const element of this.marked[kind]) element.classList.add(kind);
  }
}
