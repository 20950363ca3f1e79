// Which frames are wide enough to see, where does each one go, and what can be read in it?
//
// Joined into flame.js by assets.py.

import { faded } from "./page.js";

export const ROW = 19;
const NARROWEST = 0.5;
const READABLE = 34;

/** Paint one scene; returns what a click may hit (rows of node, left, width) and how many frames were drawn and skipped.
 *
 * A scene is { tree, zoom, cursor, width, top, bottom, ink, label, color, matching }: `top` and `bottom` bound the
 * visible part in pixels, `matching` is null without a search. A frame under half a pixel is skipped with all below it. */
export function paintFrames(context, scene) {
  const { tree, zoom } = scene;
  const { parent, below, start, total, firstChild, children } = tree;
  const scale = scene.width / (total[zoom] || 1);
  const brush = { ...scene, context, rows: Array.from({ length: tree.deepest + 1 }, () => []), widths: new Map() };
  let drawn = 0;
  for (let at = parent[zoom]; at >= 0; at = parent[at]) paintFrame(brush, at, 0, scene.width);
  const waiting = [zoom];
  while (waiting.length > 0) {
    const node = waiting.pop();
    drawn += 1;
    paintFrame(brush, node, (start[node] - start[zoom]) * scale, total[node] * scale);
    for (let at = firstChild[node]; at < firstChild[node + 1]; at += 1) {
      const child = children[at];
      if (total[child] * scale < NARROWEST) {
        // Siblings stand from wide to narrow, so all that follow are narrower still.
        paintRest(brush, node, at, scale);
        break;
      }
      waiting.push(child);
    }
  }
  return { rows: brush.rows, drawn, skipped: below[zoom] + 1 - drawn };
}

function paintFrame(brush, node, left, width) {
  const { context, tree, matching, ink } = brush;
  const depth = tree.depth[node];
  brush.rows[depth].push(node, left, width);
  const y = depth * ROW - brush.top;
  if (y + ROW < 0 || y > brush.bottom - brush.top) return;
  const isDim = matching ? !matching[node] : tree.below[node] > tree.below[brush.zoom];
  const fill = brush.color(node);
  context.globalAlpha = isDim ? 0.35 : 1;
  context.fillStyle = fill;
  context.fillRect(left, y, Math.max(width - 0.7, 0.4), ROW - 1);
  context.globalAlpha = 1;
  if (node === brush.cursor || (matching && !isDim && width > 3)) {
    context.strokeStyle = ink.text;
    context.lineWidth = node === brush.cursor ? 2 : 1;
    context.strokeRect(left + 1, y + 1, Math.max(width - 3, 1), ROW - 3);
  }
  if (width < READABLE) return;
  context.fillStyle = isDim ? ink.text : textOn(fill);
  context.fillText(clipped(brush, brush.label(node), width - 9), left + 4, y + ROW / 2);
}

/** The children that are too narrow to draw, as one faint block: there is something there, and a zoom shows it. */
function paintRest(brush, node, from, scale) {
  const { start, total, children, firstChild, depth } = brush.tree;
  const first = children[from];
  const last = children[firstChild[node + 1] - 1];
  const left = (start[first] - start[brush.zoom]) * scale;
  const width = (start[last] + total[last] - start[first]) * scale;
  if (width < 1) return;
  brush.context.fillStyle = faded(brush.ink.text, 0.18);
  brush.context.fillRect(left, (depth[node] + 1) * ROW - brush.top, width, ROW - 1);
}

/** Black or white, whichever can be read on the colour. */
function textOn(fill) {
  const [red, green, blue] = [1, 3, 5].map((at) => (parseInt(fill.slice(at, at + 2), 16) / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 ? "#000000" : "#ffffff";
}

/** The label as far as it fits: whole, else without the file, else its beginning and an ellipsis. */
function clipped(brush, label, room) {
  const measure = (text) => {
    if (!brush.widths.has(text)) brush.widths.set(text, brush.context.measureText(text).width);
    return brush.widths.get(text);
  };
  if (measure(label) <= room) return label;
  const short = label.replace(/ \([^()]*\)$/, "");
  const width = measure(short);
  if (width <= room) return short;
  const kept = Math.floor((short.length * room) / width) - 1;
  return kept < 3 ? "" : `${short.slice(0, kept)}…`;
}
