// What does the page around a picture look like now, and when does that change?
//
// Joined into chart.js and flame.js by assets.py, so that each of them is one file wherever it runs.

/** The colours of a printed page. */
export const PRINT_INK = { text: "rgb(0, 0, 0)", paper: "rgb(255, 255, 255)" };

/** Text and paper colour around an element: JupyterLab's variables, else what the element inherits. */
export function inkOf(el) {
  const probe = el.appendChild(document.createElement("span"));
  const read = (name, fallback) => {
    probe.style.color = `var(${name}, ${fallback})`;
    return getComputedStyle(probe).color;
  };
  const ink = { text: read("--jp-content-font-color1", "inherit"), paper: read("--jp-layout-color0", "Canvas") };
  probe.remove();
  return ink;
}

/** An `rgb(…)` colour with another opacity. */
export function faded(color, alpha) {
  const [red, green, blue] = color.match(/[\d.]+/g);
  return `rgba(${red}, ${green}, ${blue}, ${alpha})`;
}

/** Call `redraw` when the theme around an element changes; returns how to stop. */
export function onThemeChange(el, redraw) {
  let before = inkOf(el).text;
  const check = () => {
    const now = inkOf(el).text;
    if (now !== before) redraw();
    before = now;
  };
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", check);
  const watcher = new MutationObserver(check);
  const attributes = { attributes: true, attributeFilter: ["class", "style", "data-jp-theme-light", "data-jp-theme-name"] };
  for (const node of [document.documentElement, document.body]) watcher.observe(node, attributes);
  return () => {
    scheme.removeEventListener("change", check);
    watcher.disconnect();
  };
}

/** Call `onPrint(true)` before the page prints and `onPrint(false)` after; returns how to stop. */
export function onPrinting(onPrint) {
  const before = () => onPrint(true);
  const after = () => onPrint(false);
  addEventListener("beforeprint", before);
  addEventListener("afterprint", after);
  return () => {
    removeEventListener("beforeprint", before);
    removeEventListener("afterprint", after);
  };
}
