// How does a plotly figure become a picture that fits its page, follows its theme and keeps the reader's zoom?
//
// One file for three hosts: the notebook (default export, anywidget), the report and the test page (`drawChart`).
// plotly.js is loaded once a page by the host; this file waits for the global `Plotly` and never loads it.

import { PRINT_INK, faded, inkOf, onPrinting, onThemeChange } from "./page.js";

const READY_EVENT = "perfkit-plotly-ready";
const PATIENCE_MS = 30000;
const CONFIG = { displaylogo: false, responsive: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };
const PRINT_WIDTH = "180mm";

/** The page's Plotly, as soon as it is there. */
function plotlyReady() {
  if (globalThis.Plotly) return Promise.resolve(globalThis.Plotly);
  return new Promise((resolve, reject) => {
    const giveUp = setTimeout(
      () => reject(new Error("plotly.js did not load in this page; run the cell again or reload the page")),
      PATIENCE_MS,
    );
    globalThis.addEventListener(READY_EVENT, () => {
      clearTimeout(giveUp);
      resolve(globalThis.Plotly);
    }, { once: true });
  });
}

/** A copy of the layout with every unset colour taken from the page; what the figure sets itself stays. */
export function themedLayout(layout, ink) {
  const template = layout.template ?? {};
  const axis = (old) => ({
    ...old,
    gridcolor: faded(ink.text, 0.14),
    zerolinecolor: faded(ink.text, 0.3),
    linecolor: faded(ink.text, 0.5),
    tickcolor: faded(ink.text, 0.5),
  });
  const base = template.layout ?? {};
  const themed = {
    ...base,
    font: { ...base.font, color: ink.text },
    paper_bgcolor: "rgba(0, 0, 0, 0)",
    plot_bgcolor: "rgba(0, 0, 0, 0)",
    hoverlabel: { ...base.hoverlabel, bgcolor: ink.paper, bordercolor: faded(ink.text, 0.6), font: { color: ink.text } },
    modebar: { bgcolor: "rgba(0, 0, 0, 0)", color: faded(ink.text, 0.45), activecolor: ink.text },
    xaxis: axis(base.xaxis),
    yaxis: axis(base.yaxis),
  };
  return {
    autosize: true,
    ...layout,
    uirevision: layout.uirevision ?? "kept",
    template: { ...template, layout: themed },
  };
}

function parsed(figure) {
  return typeof figure === "string" ? JSON.parse(figure) : figure;
}

/** Draw a figure (plotly JSON, text or object) into an element.
 *  `options.description` is what a screen reader says. Returns { update, destroy, drawn }. */
export function drawChart(el, figure, options = {}) {
  const plot = el.appendChild(document.createElement("div"));
  plot.setAttribute("role", "img");
  plot.setAttribute("aria-label", options.description ?? parsed(figure)?.layout?.title?.text ?? "chart");
  let current = parsed(figure);
  let printing = false;
  let alive = true;

  const paint = (Plotly) => {
    // A notebook renders an element before it puts it into the page; until then it has neither size nor colours.
    if (!alive || !current?.data || !el.isConnected) return undefined;
    const layout = themedLayout(current.layout ?? {}, printing ? PRINT_INK : inkOf(el));
    const started = performance.now();
    return Promise.resolve(Plotly.react(plot, current.data, layout, CONFIG)).then(() => {
      el.dataset.drawMs = (performance.now() - started).toFixed(1);
      el.dataset.draws = Number(el.dataset.draws ?? 0) + 1;
    });
  };
  const fail = (error) => {
    plot.textContent = `The chart cannot be drawn: ${error.message}`;
    el.dataset.error = error.message;
  };
  const redraw = () => plotlyReady().then(paint).catch(fail);

  const fit = () => {
    const isShown = alive && plot._fullLayout && plot.clientWidth > 0;
    return isShown ? globalThis.Plotly.Plots.resize(plot).catch(fail) : undefined;
  };
  const resizer = new ResizeObserver(() => printing || (plot._fullLayout ? fit() : redraw()));
  resizer.observe(plot);
  const stopTheme = onThemeChange(el, redraw);
  const stopPrinting = onPrinting((isPrinting) => {
    printing = isPrinting;
    plot.style.width = isPrinting ? PRINT_WIDTH : "";
    if (!globalThis.Plotly || !plot._fullLayout) return;
    paint(globalThis.Plotly);
    fit();
  });

  return {
    drawn: redraw(),
    update(next) {
      current = parsed(next);
      return redraw();
    },
    destroy() {
      alive = false;
      resizer.disconnect();
      stopTheme();
      stopPrinting();
      if (globalThis.Plotly) globalThis.Plotly.purge(plot);
      plot.remove();
    },
  };
}

/** anywidget: make sure that the widget which carries plotly.js (trait `runtime`) is in the page. */
async function initialize({ model }) {
  const reference = model.get("runtime");
  if (typeof reference !== "string" || globalThis.Plotly) return;
  await model.widget_manager?.get_model(reference.replace("IPY_MODEL_", ""));
}

/** anywidget: one view of the trait `figure`. */
function render({ model, el }) {
  el.classList.add("perfkit-chart");
  const chart = drawChart(el, model.get("figure"));
  const update = () => chart.update(model.get("figure"));
  model.on("change:figure", update);
  return () => {
    model.off("change:figure", update);
    chart.destroy();
  };
}

export default { initialize, render };
