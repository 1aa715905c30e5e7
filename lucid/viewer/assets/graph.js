"use strict";
// The drawn graph: equations in their scopes, which fold; dagre places what is visible.

const FEW = 34; // what is visible at first
const FEW_OF_MANY = 18; // of more than LARGE equations
const LARGE = 600;
const MANY = 48; // more children than this are folded by line, then in parts
const MAX_ARGUMENTS = 12; // more arguments than this are written into the nodes that read them

/** The equations of a stage as a tree: a scope is a group, once for each time that it is entered. */
class Tree {
  constructor(program, stage) {
    this.program = program;
    this.leaves = new Map(); // origin -> leaves
    this.producers = new Map(); // name -> leaf
    this.count = 0;
    this.visits = new Map();
    this.root = this.group(null, "", "");
    this.fill(this.root, stage.rows);
    this.finish(this.root);
    this.root.open = true;
    this.openSome();
  }

  group(parent, label, kind) {
    const made = { id: "n" + this.count++, group: true, label, kind, parent, children: [], open: false, origins: [], size: 0 };
    if (parent) parent.children.push(made);
    return made;
  }

  fill(top, rows) {
    const { program } = this;
    let stack = [{ scope: -1, group: top }];
    for (const r of rows) {
      const row = program.rows[r];
      const chain = [];
      for (let s = row.scope; s >= 0; s = program.scopes[s][2]) chain.unshift(s);
      let same = 0;
      while (same < chain.length && same + 1 < stack.length && stack[same + 1].scope === chain[same]) same++;
      stack.length = same + 1;
      for (const scope of chain.slice(same)) {
        const [label, kind] = program.scopes[scope];
        const visit = (this.visits.get(scope) || 0) + 1;
        this.visits.set(scope, visit);
        const name = visit === 1 ? label : label + " ·" + visit;
        stack.push({ scope, group: this.group(stack[stack.length - 1].group, name, kind) });
      }
      this.equation(stack[stack.length - 1].group, r, row);
    }
  }

  equation(parent, r, row) {
    const leaf = { id: "n" + this.count++, row: r, label: row.op, parent, origins: row.from, size: 1 };
    if (row.bodies) {
      const around = this.group(parent, row.op, "");
      around.holder = leaf;
      leaf.parent = around;
      around.children.push(leaf);
      for (const name of row.bodies) this.fill(this.group(around, name, "body"), this.program.bodies[name].rows);
    } else {
      parent.children.push(leaf);
    }
    for (const [name] of row.out) this.producers.set(name, leaf);
    for (const origin of row.from) {
      if (!this.leaves.has(origin)) this.leaves.set(origin, []);
      this.leaves.get(origin).push(leaf);
    }
  }

  /** Fold long lists of equations by line, then in parts, and sum up what is inside. */
  finish(group) {
    if (group.children.length > MANY) this.fold(group, (child) => (child.group ? null : this.program.place(this.program.rows[child.row])), 4);
    if (group.children.length > MANY) {
      const size = Math.max(24, Math.ceil(group.children.length / 30));
      const number = new Map(group.children.map((child, i) => [child, Math.floor(i / size)]));
      this.fold(group, (child) => "part " + (number.get(child) + 1), 2);
    }
    const origins = new Set();
    for (const child of group.children) {
      if (child.group) this.finish(child);
      group.size += child.size;
      for (const origin of child.origins) origins.add(origin);
    }
    group.origins = [...origins];
  }

  fold(group, key, least) {
    const children = group.children, first = key(children[0]);
    if (first && children.every((child) => key(child) === first)) return; // there is nothing to tell apart
    group.children = [];
    for (let i = 0; i < children.length; ) {
      let end = i + 1;
      const label = key(children[i]);
      while (end < children.length && label && key(children[end]) === label) end++;
      if (label && end - i >= least) {
        const inner = this.group(group, label, "");
        for (const child of children.slice(i, end)) { child.parent = inner; inner.children.push(child); }
      } else {
        group.children.push(...children.slice(i, end));
      }
      i = end;
    }
  }

  openSome() {
    const few = this.root.size > LARGE ? FEW_OF_MANY : FEW;
    let visible = this.root.children.length;
    let level = this.root.children.filter((child) => child.group);
    while (level.length) {
      const next = [];
      for (const group of level.sort((a, b) => a.children.length - b.children.length)) {
        if (visible + group.children.length > few && !(this.root.children.length < 5 && visible < 5)) continue;
        group.open = true;
        visible += group.children.length;
        next.push(...group.children.filter((child) => child.group));
      }
      level = next;
    }
  }

  groups() {
    const found = [];
    const visit = (group) => { for (const child of group.children) if (child.group) { found.push(child); visit(child); } };
    visit(this.root);
    return found;
  }

  /** What stands for a node in the drawing: itself, or the outermost closed group around it. */
  visible(node) {
    let shown = node;
    for (let around = node.parent; around; around = around.parent) if (!around.open) shown = around;
    return shown;
  }
}

class Drawing {
  constructor(app, program) {
    this.app = app;
    this.program = program;
    this.pane = "graph" + program.number;
    this.stage = 0;
    this.view = { x: 0, y: 0, k: 1 };
    this.svg = make("svg", { "data-program": program.number });
    this.layer = make("g");
    this.svg.append(
      make("defs", {}, make("marker", { id: "arrow" + program.number, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto" },
        make("path", { d: "M1 1L7 4L1 7", fill: "none", style: "stroke: var(--wire)" }))),
      this.layer);
    const choice = make("select", { title: "The stage that is drawn", onchange: (e) => this.setStage(Number(e.target.value)) },
      ...program.stages.map((stage, i) => make("option", { value: i }, stage.name)));
    const button = (text, title, act, kind = "") => make("button", { title, class: kind, onclick: act }, text);
    this.element = make("div", { class: "canvas" },
      make("div", { class: "canvas-head" }, make("b", {}, program.title), choice, make("span"),
        button("fold", "Fold everything", () => this.foldAll(), "level"), button("unfold", "Unfold one level more", () => this.unfold(), "level"),
        button("−", "Zoom out", () => this.zoom(1 / 1.3)), button("+", "Zoom in", () => this.zoom(1.3)), button("fit", "Show everything", () => this.fit())),
      this.svg);
    this.element.querySelector("select").setAttribute("aria-label", "stage");
    this.listen();
    this.setStage(0);
  }

  setStage(number) {
    this.stage = number;
    this.tree = new Tree(this.program, this.program.stages[number]);
    this.draw();
    this.fitted = false;
  }

  foldAll() { for (const group of this.tree.groups()) group.open = false; this.draw(); this.fit(); }

  unfold() {
    for (const group of this.tree.groups().filter((g) => !g.open && this.tree.visible(g) === g)) group.open = true;
    this.draw();
    this.fit();
  }

  toggle(group) {
    const before = this.boxes.get(group.id);
    group.open = !group.open;
    this.draw();
    const after = this.boxes.get(group.id);
    if (before && after) { // the group stays where it is on the screen
      this.view.x += (before.left - after.left) * this.view.k;
      this.view.y += (before.top - after.top) * this.view.k;
      this.apply();
    }
  }

  text(node) {
    const { program } = this;
    if (node.group) {
      const heat = program.heatOf(node.origins);
      const shown = heat && program.total ? " · " + time(heat) : "";
      return [node.label, (node.kind ? node.kind + " · " : "") + node.size + (node.size === 1 ? " equation" : " equations") + shown];
    }
    if (node.input) return [node.label, node.type];
    if (node.output) return [node.label, node.type];
    const row = program.rows[node.row];
    const read = row.in.filter((name) => this.written.has(name)).map((name) => name.split(".").slice(-2).join("."));
    const sub = row.out.map((out) => out[1]).join(", ") + (read.length ? " · " + read.slice(0, 2).join(", ") : "");
    return [row.op, sub.length > 44 ? sub.slice(0, 43) + "…" : sub];
  }

  /** The visible nodes and the wires between them. */
  collect() {
    const { tree, program } = this;
    const stage = program.stages[this.stage];
    const nodes = [], clusters = [], wires = new Map();
    const given = stage.inputs.slice(0, program.given);
    this.written = new Set(stage.inputs.map((input) => input[0]));
    const ports = new Map();
    if (given.length <= MAX_ARGUMENTS) for (const [name, type] of given) {
      ports.set(name, { id: "in-" + name, input: true, label: name, type, origins: [], size: 0 });
      this.written.delete(name);
    }
    const visit = (group) => {
      for (const child of group.children) {
        if (child.group && child.open) { clusters.push(child); visit(child); } else nodes.push(child);
      }
    };
    visit(tree.root);
    const connect = (from, to) => { if (from !== to) wires.set(from.id + ">" + to.id, [from, to]); };
    const link = (leaf) => {
      const to = tree.visible(leaf);
      for (const name of program.rows[leaf.row].in) {
        const producer = tree.producers.get(name);
        if (producer) connect(tree.visible(producer), to);
        else if (ports.has(name)) { ports.get(name).used = true; connect(ports.get(name), to); }
      }
    };
    const walk = (group) => { for (const child of group.children) if (child.group) walk(child); else link(child); };
    walk(tree.root);
    for (const port of ports.values()) if (port.used) nodes.push(port);
    const returned = stage.returns.slice(0, 4).filter((name) => tree.producers.has(name));
    if (returned.length) {
      const more = stage.returns.length - returned.length;
      const end = { id: "out", output: true, label: "return", type: more ? "and " + more + " values more" : "", origins: [], size: 0 };
      nodes.push(end);
      for (const name of returned) connect(tree.visible(tree.producers.get(name)), end);
    }
    return { nodes, clusters, wires: [...wires.values()] };
  }

  draw() {
    const { nodes, clusters, wires } = this.collect();
    const graph = new dagre.graphlib.Graph({ compound: true });
    graph.setGraph({ rankdir: "TB", nodesep: 16, ranksep: clusters.length ? 30 : 34, edgesep: 8, marginx: 16, marginy: 16 });
    graph.setDefaultEdgeLabel(() => ({}));
    for (const cluster of clusters) graph.setNode(cluster.id, {});
    for (const node of nodes) {
      const [label, sub] = this.text(node);
      const width = Math.max(label.length * 7.4 + (node.group ? 34 : 26), sub.length * 6.6 + 26, 56);
      graph.setNode(node.id, { width, height: sub ? 40 : 28 });
    }
    for (const node of [...clusters, ...nodes]) {
      if (node.parent && node.parent !== this.tree.root) graph.setParent(node.id, node.parent.id);
    }
    for (const [from, to] of wires) graph.setEdge(from.id, to.id);
    dagre.layout(graph);
    this.size = graph.graph();
    this.app.links.clear(this.pane);
    this.boxes = new Map();
    this.layer.replaceChildren();
    for (const cluster of clusters) this.drawCluster(cluster, graph.node(cluster.id));
    for (const [from, to] of wires) this.drawWire(from, to, graph.edge(from.id, to.id).points);
    for (const node of nodes) this.drawNode(node, graph.node(node.id));
    this.app.refresh();
  }

  drawCluster(cluster, { x, y, width, height }) {
    const depth = (group) => 1 + Math.max(0, ...group.children.filter((child) => child.group && child.open).map(depth));
    const room = 8 + 13 * (depth(cluster) - 1); // for the titles of the clusters inside
    const left = x - width / 2, top = y - height / 2 - room;
    this.boxes.set(cluster.id, { left, top, width, height });
    const element = make("g", { class: "cluster", transform: `translate(${left},${top})`, "data-scope": cluster.label },
      make("rect", { width, height: height + room, rx: 10 }), this.chevron(cluster, 8, 5),
      make("text", { x: 24, y: 17 }, cluster.label, make("tspan", { class: "kind", dx: 6 }, cluster.kind)));
    element.querySelector("rect").addEventListener("click", (e) => this.click(e, cluster));
    element.querySelector("rect").addEventListener("dblclick", () => this.toggle(cluster));
    this.layer.append(element);
  }

  chevron(group, x, y) {
    const d = group.open ? "M4 6L8 10L12 6" : "M6 4L10 8L6 12";
    return make("g", { class: "fold", transform: `translate(${x},${y})`, onclick: (e) => { e.stopPropagation(); this.toggle(group); } },
      make("title", {}, group.open ? "Fold" : "Unfold"), make("rect", { width: 16, height: 16 }), make("path", { d }));
  }

  drawWire(from, to, points) {
    let d = `M${points[0].x} ${points[0].y}`;
    for (let i = 1; i < points.length - 1; i++) {
      const a = points[i], b = points[i + 1], last = i === points.length - 2;
      d += ` Q${a.x} ${a.y} ${last ? b.x : (a.x + b.x) / 2} ${last ? b.y : (a.y + b.y) / 2}`;
    }
    if (points.length === 2) d += ` L${points[1].x} ${points[1].y}`;
    const wire = make("path", { class: "wire", d, "marker-end": `url(#arrow${this.program.number})` });
    this.layer.append(wire);
  }

  drawNode(node, { x, y, width, height }) {
    const left = x - width / 2, top = y - height / 2;
    this.boxes.set(node.id, { left, top, width, height });
    const [label, sub] = this.text(node);
    const kind = node.group ? "group" : node.input ? "input" : node.output ? "output" : "equation";
    const element = make("g", { class: "node " + kind, transform: `translate(${left},${top})`, "data-label": label });
    element.append(make("rect", { class: "box", width, height, rx: kind === "input" || kind === "output" ? height / 2 : 7 }));
    const share = this.program.total ? this.program.heatOf(node.origins) / this.program.total : 0;
    if (share > 0.002) element.append(make("rect", { width, height, rx: 7, style: `fill: rgba(var(--heat), ${(0.5 * Math.sqrt(share)).toFixed(3)}); pointer-events: none` }));
    if (kind === "equation") {
      element.append(make("rect", { x: 0, y: 7, width: 3, height: height - 14, rx: 1.5, style: `fill: var(--${this.program.rows[node.row].kind})` }));
    }
    const indent = node.group ? 24 : 12;
    if (node.group) element.append(this.chevron(node, 5, 5));
    element.append(make("text", { class: "op", x: indent, y: sub ? 17 : 18 }, label));
    if (sub) element.append(make("text", { class: "sub", x: indent, y: 32 }, sub));
    element.addEventListener("click", (e) => this.click(e, node));
    if (node.group) element.addEventListener("dblclick", () => this.toggle(node));
    if (node.origins.length) {
      element.addEventListener("pointerenter", () => this.app.hover(this.program, node.origins));
      element.addEventListener("pointerleave", () => this.app.hover(null));
      this.app.links.add(this.pane, this.program.number, node.origins, element);
    }
    this.layer.append(element);
  }

  click(event, node) {
    event.stopPropagation();
    if (this.moved || !node.origins.length) return;
    this.app.select(this.program, node.origins, "graph");
  }

  // Moving and zooming

  listen() {
    let start = null;
    this.svg.addEventListener("pointerdown", (e) => { start = { x: e.clientX - this.view.x, y: e.clientY - this.view.y, at: [e.clientX, e.clientY] }; this.moved = false; });
    this.svg.addEventListener("pointermove", (e) => {
      if (!start || !e.buttons) return;
      if (Math.hypot(e.clientX - start.at[0], e.clientY - start.at[1]) > 4) {
        this.moved = true;
        this.svg.classList.add("dragging");
        this.svg.setPointerCapture(e.pointerId);
      }
      if (!this.moved) return;
      this.view.x = e.clientX - start.x;
      this.view.y = e.clientY - start.y;
      this.apply();
    });
    const end = () => { start = null; this.svg.classList.remove("dragging"); };
    this.svg.addEventListener("pointerup", end);
    this.svg.addEventListener("pointercancel", end);
    this.svg.addEventListener("click", () => { if (!this.moved) this.app.select(null); });
    this.svg.addEventListener("wheel", (e) => {
      e.preventDefault();
      const box = this.svg.getBoundingClientRect();
      this.zoom(Math.exp(-e.deltaY * (e.ctrlKey ? 0.01 : 0.0015)), e.clientX - box.left, e.clientY - box.top);
    }, { passive: false });
    new ResizeObserver(() => { if (!this.fitted) this.fit(); }).observe(this.svg);
  }

  zoom(factor, x, y) {
    const box = this.svg.getBoundingClientRect();
    const k = Math.min(4, Math.max(0.05, this.view.k * factor));
    const at = [x ?? box.width / 2, y ?? box.height / 2];
    this.view.x = at[0] - ((at[0] - this.view.x) * k) / this.view.k;
    this.view.y = at[1] - ((at[1] - this.view.y) * k) / this.view.k;
    this.view.k = k;
    this.fitted = true;
    this.apply();
  }

  fit() {
    const box = this.svg.getBoundingClientRect();
    if (!box.width || !this.size) return;
    const whole = Math.min(box.width / this.size.width, box.height / this.size.height, 1.15);
    const k = Math.max(whole, Math.min(box.width / this.size.width, 0.62)); // a tall graph begins readable
    const y = k > whole ? 6 : (box.height - this.size.height * k) / 2;
    this.view = { k, x: (box.width - this.size.width * k) / 2, y };
    this.apply();
    this.fitted = box.width > 0;
  }

  apply() { this.layer.setAttribute("transform", `translate(${this.view.x},${this.view.y}) scale(${this.view.k})`); }

  /** Move the view so that one of these equations is in it. */
  reveal(origins) {
    const box = this.svg.getBoundingClientRect();
    if (!box.width) return;
    const leaves = origins.flatMap((origin) => this.tree.leaves.get(origin) || []);
    const places = leaves.map((leaf) => this.boxes.get(this.tree.visible(leaf).id)).filter(Boolean);
    const inside = (place) => {
      const x = this.view.x + (place.left + place.width / 2) * this.view.k, y = this.view.y + (place.top + place.height / 2) * this.view.k;
      return x > 20 && x < box.width - 20 && y > 20 && y < box.height - 20;
    };
    if (!places.length || places.some(inside)) return;
    const place = places[0];
    this.view.x = box.width / 2 - (place.left + place.width / 2) * this.view.k;
    this.view.y = box.height / 2 - (place.top + place.height / 2) * this.view.k;
    this.apply();
  }
}
