// Where did the samples fall: which frames, in which threads, and who held the GIL?
//
// An icicle on a canvas: roots at the top, width = samples. One file for three hosts: the notebook (default export,
// anywidget), the report and the test page (`drawFlame`). A frame narrower than half a pixel is not drawn but counted.

import { PRINT_INK, inkOf, onPrinting, onThemeChange } from "./page.js";
import { OTHER, foldTree, layTree, paletteOf } from "./flame_tree.js";
import { ROW, paintFrames } from "./flame_paint.js";

const MAX_HEIGHT = 560;
const PRINT_HEIGHT = 900;
const PRINT_WIDTH = 680;
const MODES = { default: "CPU", gil: "GIL holders", idle: "wall" };
const HINTS = {
  default: "threads that were running",
  gil: "threads that held the GIL",
  idle: "every thread, waiting ones too",
};
const CSS = `
.perfkit-flame { position: relative; font-size: 13px; color: var(--jp-content-font-color1, inherit); }
.perfkit-flame .bar { display: flex; flex-wrap: wrap; gap: 6px 10px; align-items: center; margin-bottom: 6px; }
.perfkit-flame button, .perfkit-flame select, .perfkit-flame input { font: inherit; color: inherit; padding: 3px 9px;
  background: color-mix(in srgb, currentColor 6%, transparent); border-radius: 4px;
  border: 1px solid color-mix(in srgb, currentColor 35%, transparent); }
.perfkit-flame select { max-width: 260px; } .perfkit-flame option { color: CanvasText; background: Canvas; }
.perfkit-flame button { cursor: pointer; } .perfkit-flame button:disabled { opacity: 0.45; cursor: default; }
.perfkit-flame button[aria-pressed="true"] { font-weight: 600; border-color: currentColor;
  background: color-mix(in srgb, currentColor 20%, transparent); }
.perfkit-flame .modes { display: inline-flex; gap: 2px; }
.perfkit-flame :is(button, select, input, canvas):focus-visible { outline: 2px solid #0072b2; outline-offset: 1px; }
.perfkit-flame .caption, .perfkit-flame .legend, .perfkit-flame .cursor { opacity: 0.85; margin: 4px 0; }
.perfkit-flame .legend { display: flex; flex-wrap: wrap; gap: 2px 14px; }
.perfkit-flame .legend i { display: inline-block; width: 11px; height: 11px; margin-right: 5px; border-radius: 2px; }
.perfkit-flame .view { overflow-y: auto; position: relative; } .perfkit-flame canvas { position: sticky; top: 0; display: block; }
.perfkit-flame .cursor { min-height: 1.4em; overflow-wrap: anywhere; }
.perfkit-flame .tip { position: absolute; pointer-events: none; z-index: 5; max-width: 460px; padding: 6px 9px; border-radius: 4px;
  overflow-wrap: anywhere; white-space: pre-line; background: var(--jp-layout-color0, Canvas);
  border: 1px solid color-mix(in srgb, currentColor 50%, transparent); box-shadow: 0 2px 8px rgba(0, 0, 0, 0.25); }
@media print { .perfkit-flame .bar, .perfkit-flame .cursor { display: none; } .perfkit-flame .view { overflow: visible; }
  .perfkit-flame .legend i { print-color-adjust: exact; } }`;

const whole = (number) => Math.round(number).toLocaleString("en");
const percent = (ratio) => `${(100 * ratio).toLocaleString("en", { maximumSignificantDigits: ratio >= 0.1 ? 3 : 2 })} %`;

function element(parent, tag, properties = {}, className = "") {
  const made = Object.assign(document.createElement(tag), properties);
  if (className) made.className = className;
  return parent.appendChild(made);
}

class FlameGraph {
  constructor(el, options) {
    this.el = el;
    this.options = options;
    this.state = { mode: 0, thread: "merged", zoom: 0, cursor: 0, query: "" };
    this.stops = [];
    this.printing = false;
    this.build();
    this.listen();
  }

  build() {
    this.box = element(this.el, "div", {}, "perfkit-flame");
    element(this.box, "style", { textContent: CSS });
    const bar = element(this.box, "div", {}, "bar");
    this.modes = element(bar, "span", { role: "group", ariaLabel: "recording" }, "modes");
    this.threads = element(bar, "select", { ariaLabel: "threads shown" });
    this.search = element(bar, "input", { type: "search", placeholder: "search frames", ariaLabel: "search frames" });
    this.reset = element(bar, "button", { type: "button", textContent: "Reset zoom", title: "Escape does the same" });
    this.matches = element(bar, "output", { ariaLive: "polite" }, "matches");
    this.caption = element(this.box, "p", {}, "caption");
    this.view = element(this.box, "div", {}, "view");
    this.spacer = element(this.view, "div");
    this.canvas = element(this.spacer, "canvas", { tabIndex: 0, role: "application" });
    this.cursorLine = element(this.box, "p", { ariaLive: "polite" }, "cursor");
    this.legend = element(this.box, "p", { ariaLabel: "colours by module" }, "legend");
    this.tip = element(this.box, "div", { hidden: true, role: "tooltip" }, "tip");
  }

  listen() {
    const on = (target, type, call) => {
      target.addEventListener(type, call);
      this.stops.push(() => target.removeEventListener(type, call));
    };
    on(this.canvas, "click", (event) => this.choose(this.nodeAt(event)));
    on(this.canvas, "mousemove", (event) => this.showTip(event));
    on(this.canvas, "mouseleave", () => { this.tip.hidden = true; });
    on(this.box, "keydown", (event) => this.key(event));
    on(this.search, "input", () => this.find(this.search.value));
    on(this.reset, "click", () => this.zoomTo(0));
    on(this.threads, "change", () => this.showThread(this.threads.value));
    on(this.view, "scroll", () => this.draw());
    const resizer = new ResizeObserver(() => this.el.clientWidth !== this.width && this.draw());
    resizer.observe(this.el);
    // While JupyterLab changes its theme it hides the page for a moment: an element without a width cannot be drawn.
    this.stops.push(onThemeChange(this.el, () => requestAnimationFrame(() => this.draw())));
    this.stops.push(onPrinting((isPrinting) => this.print(isPrinting)));
    this.stops.push(() => resizer.disconnect());
  }

  load(data) {
    this.data = typeof data === "string" ? JSON.parse(data || "null") : data;
    const recordings = this.data?.recordings ?? [];
    this.box.querySelector(".bar").hidden = this.view.hidden = this.legend.hidden = recordings.length === 0;
    if (recordings.length === 0) {
      this.caption.textContent = "No flame graph was recorded.";
      return;
    }
    const { colors, legend } = paletteOf(this.data);
    this.colors = colors;
    this.legend.replaceChildren();
    for (const [module, color] of legend) {
      const entry = element(this.legend, "span");
      element(entry, "i").style.background = color;
      entry.append(module);
    }
    this.modes.replaceChildren(...recordings.map(({ mode }, index) => {
      const title = HINTS[mode] ?? mode;
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: MODES[mode] ?? mode, title });
      button.addEventListener("click", () => this.showMode(index));
      return button;
    }));
    this.showMode(Math.min(this.state.mode, recordings.length - 1));
  }

  get recording() { return this.data.recordings[this.state.mode]; }

  /** Switch to another recording; the thread stays chosen when the recording knows a thread of that name. */
  showMode(index) {
    const before = typeof this.state.thread === "number" ? this.recording.threads[this.state.thread] : null;
    this.state.mode = index;
    const same = this.recording.threads.indexOf(before);
    if (before !== null) this.state.thread = same < 0 ? "merged" : same;
    [...this.modes.children].forEach((button, at) => button.setAttribute("aria-pressed", String(at === index)));
    this.threads.replaceChildren();
    element(this.threads, "option", { value: "merged", textContent: "all threads, merged" });
    element(this.threads, "option", { value: "apart", textContent: "all threads, side by side" });
    this.recording.threads.forEach((name, at) => element(this.threads, "option", { value: String(at), textContent: name }));
    this.showThread(String(this.state.thread));
    this.caption.textContent = captionOf(this.recording, this.data);
  }

  showThread(value) {
    const started = performance.now();
    this.state.thread = /^\d+$/.test(value) ? Number(value) : value;
    this.state.zoom = 0;
    this.threads.value = value;
    this.tree = layTree(foldTree(this.recording, this.data.names.length, this.state.thread));
    this.samples = this.recording.self.reduce((sum, count) => sum + count, 0);
    this.find(this.state.query, started);
  }

  /** Mark the frames whose name holds the text; the share counts a sample once, however many of its frames match. */
  find(query, started = performance.now()) {
    this.state.query = query;
    const wanted = query.trim().toLowerCase();
    const fits = wanted ? this.data.names.map((name) => name.toLowerCase().includes(wanted)) : null;
    this.matching = fits && this.tree.name.map((name) => name >= 0 && fits[name]);
    let samples = 0;
    let frames = 0;
    const covered = new Uint8Array(this.tree.size);
    for (let node = 1; fits && node < this.tree.size; node += 1) {
      covered[node] = covered[this.tree.parent[node]] || this.matching[node];
      frames += this.matching[node];
      if (covered[node] && !covered[this.tree.parent[node]]) samples += this.tree.total[node];
    }
    const share = samples / (this.tree.total[0] || 1);
    this.matches.textContent = fits ? `${whole(frames)} frames match: ${percent(share)} of the samples shown` : "";
    Object.assign(this.el.dataset, { matchFrames: frames, matchShare: share });
    this.zoomTo(this.state.zoom, started);
  }

  zoomTo(node, started = performance.now()) {
    this.state.zoom = node;
    this.state.cursor = node;
    this.reset.disabled = node === 0;
    this.tip.hidden = true;
    this.draw(started);
  }

  choose(node) {
    if (node < 0) return;
    this.zoomTo(node);
    const path = [];
    for (let at = node; at >= 0; at = this.tree.parent[at]) path.unshift(this.label(at));
    const { mode } = this.recording;
    const detail = { frame: this.label(node), path, samples: this.tree.total[node], share: this.share(node), mode };
    this.el.dispatchEvent(new CustomEvent("flame-select", { detail, bubbles: true }));
    this.options.onSelect?.(detail);
  }

  share(node) { return this.tree.total[node] / (this.samples || 1); }

  label(node) {
    if (this.tree.name[node] >= 0) return this.data.names[this.tree.name[node]];
    return typeof this.state.thread === "number" ? this.recording.threads[this.state.thread] : "all threads";
  }

  describe(node) {
    const { total, self, parent } = this.tree;
    const ofParent = node > 0 ? `, ${percent(total[node] / (total[parent[node]] || 1))} of its parent` : "";
    const unit = this.recording.unit ?? "samples";
    return `${whole(total[node])} ${unit}: ${percent(this.share(node))} of the recording${ofParent}; ${whole(self[node])} in the frame itself`;
  }

  key(event) {
    if (event.key === "Escape") {
      if (event.target === this.search && this.search.value) this.find((this.search.value = ""));
      else this.zoomTo(0);
      return event.stopPropagation();
    }
    if (event.target !== this.canvas) return undefined;
    if (event.key === "Enter" || event.key === " ") this.choose(this.state.cursor);
    else if (!this.move(event.key)) return undefined;
    event.stopPropagation();
    return event.preventDefault();
  }

  /** Move the keyboard's cursor to the parent, the widest child or a sibling; false when the key means nothing. */
  move(key) {
    const { parent, children, firstChild, depth } = this.tree;
    const at = this.state.cursor;
    const around = at > 0 ? [...children.subarray(firstChild[parent[at]], firstChild[parent[at] + 1])] : [0];
    const places = {
      ArrowUp: parent[at],
      ArrowDown: firstChild[at] < firstChild[at + 1] ? children[firstChild[at]] : at,
      ArrowLeft: around[around.indexOf(at) - 1],
      ArrowRight: around[around.indexOf(at) + 1],
      Home: 0,
    };
    if (!(key in places)) return false;
    this.state.cursor = Math.max(0, places[key] ?? at);
    const top = depth[this.state.cursor] * ROW;
    if (top < this.view.scrollTop || top + ROW > this.view.scrollTop + this.view.clientHeight) this.view.scrollTop = top - ROW;
    this.draw();
    return true;
  }

  nodeAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    const row = this.rows?.[Math.floor((event.clientY - box.top + this.view.scrollTop) / ROW)] ?? [];
    for (let at = 0; at < row.length; at += 3) if (x >= row[at + 1] && x < row[at + 1] + row[at + 2]) return row[at];
    return -1;
  }

  showTip(event) {
    const node = this.nodeAt(event);
    this.canvas.style.cursor = node < 0 ? "default" : "pointer";
    this.tip.hidden = node < 0;
    if (node < 0) return;
    this.tip.textContent = `${this.label(node)}\n${this.describe(node)}`;
    const box = this.box.getBoundingClientRect();
    const left = Math.min(event.clientX - box.left + 14, box.width - this.tip.offsetWidth - 4);
    Object.assign(this.tip.style, { left: `${Math.max(0, left)}px`, top: `${event.clientY - box.top + 18}px` });
  }

  /** Size the canvas for the screen's pixels and paint what is in view. */
  draw(started = performance.now()) {
    if (!this.tree) return;
    this.width = this.printing ? Math.min(this.el.clientWidth, PRINT_WIDTH) : this.el.clientWidth;
    const full = (this.tree.deepest + 1) * ROW + 2;
    const height = Math.min(full, this.printing ? PRINT_HEIGHT : this.options.maxHeight ?? MAX_HEIGHT);
    this.view.style.height = `${height}px`;
    this.spacer.style.height = `${full}px`;
    this.width = Math.min(this.width, this.view.clientWidth || this.width);
    const context = this.prepared(height);
    const ink = this.printing ? PRINT_INK : inkOf(this.el);
    const { zoom, cursor } = this.state;
    const top = this.view.scrollTop;
    const scene = { tree: this.tree, zoom, cursor, width: this.width, top, bottom: top + height, ink, matching: this.matching };
    const { rows, drawn, skipped } = paintFrames(context, {
      ...scene,
      label: (node) => this.label(node),
      color: (node) => this.colors[this.tree.name[node]] ?? OTHER,
    });
    this.rows = rows;
    this.cursorLine.textContent = `${this.label(cursor)}: ${this.describe(cursor)}`;
    const figures = { root: this.label(zoom), nodes: this.tree.size, drawnNodes: drawn, skippedNodes: skipped };
    const { mode } = this.recording;
    Object.assign(this.el.dataset, { ...figures, mode, thread: this.threads.selectedOptions[0]?.textContent });
    this.el.dataset.drawMs = (performance.now() - started).toFixed(1);
  }

  /** The canvas at this height, cleared and scaled to the screen's own pixels. */
  prepared(height) {
    const ratio = globalThis.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(height * ratio);
    Object.assign(this.canvas.style, { width: `${this.width}px`, height: `${height}px` });
    const context = this.canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = `12px ${getComputedStyle(this.box).fontFamily}`;
    context.textBaseline = "middle";
    return context;
  }

  print(isPrinting) {
    this.printing = isPrinting;
    if (this.tree) this.draw();
  }

  destroy() {
    this.stops.forEach((stop) => stop());
    this.box.remove();
  }
}

/** What the recording is: who took it, how often, how many samples, how many were lost. Another tool's file says
 *  only in which unit its frames weigh. */
function captionOf({ mode, unit, rate_hz: rate, seconds, sample_count: samples, error_count: errors }, { title, simulated }) {
  if (unit) return `${title} · ${mode} · width: ${unit}, from ${whole(samples)} stacks or spans`;
  const lost = samples + errors > 0 ? errors / (samples + errors) : 0;
  const facts = [`py-spy, ${whole(rate)} Hz`, `${seconds.toLocaleString("en", { maximumFractionDigits: 1 })} s`,
    `${whole(samples)} samples`, `${percent(lost)} errors (${whole(errors)})`];
  const label = simulated ? "simulated · " : "";
  return `${label}${title ? `${title} · ` : ""}${MODES[mode] ?? mode}: ${HINTS[mode] ?? mode} · ${facts.join(", ")}`;
}

/** Draw a flame graph (flame data, text or object) into an element.
 *  Options: `maxHeight` in pixels, `onSelect(detail)`; a click also fires the event `flame-select` on the element.
 *  Returns { update, destroy }. Figures for tests and benches stand in `el.dataset`. */
export function drawFlame(el, data, options = {}) {
  const graph = new FlameGraph(el, options);
  graph.load(data);
  return { update: (next) => graph.load(next), destroy: () => graph.destroy() };
}

/** anywidget: one view of the trait `data`; the clicked frame goes into the trait `selected`. */
function render({ model, el }) {
  const onSelect = (detail) => {
    model.set("selected", detail);
    model.save_changes();
  };
  const flame = drawFlame(el, model.get("data"), { onSelect });
  const update = () => flame.update(model.get("data"));
  model.on("change:data", update);
  return () => {
    model.off("change:data", update);
    flame.destroy();
  };
}

export default { render };
