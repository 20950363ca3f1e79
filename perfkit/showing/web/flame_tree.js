// What tree do the samples make: who called whom, how wide is each frame, and which colour has its module?
//
// Pure functions over the recording's columns; joined into flame.js by assets.py.

// Okabe and Ito's colours, which the common kinds of colour blindness keep apart; grey is for what has no module.
const COLORS = ["#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#d55e00", "#0072b2"];
export const OTHER = "#9aa0a6";

/** `encode (sample_models/minilm.py:42)` -> `sample_models`; "" for a thread or a native frame. */
export function moduleOf(name) {
  const file = /\(([^()]*?)(?::\d+)?\)$/.exec(name)?.[1];
  if (!file || !/[./\\<]/.test(file)) return "";
  const tail = file.split(/(?:site-packages|dist-packages|lib[\\/]python[\d.]+)[\\/]/).pop();
  return tail.split(/[\\/]/).filter(Boolean)[0]?.replace(/\.\w+$/, "").replace(/^<frozen ([\w.]+).*$/, "$1") ?? "";
}

/** Give the modules with the most samples a colour each: { color of each name, legend }. */
export function paletteOf(data) {
  const modules = data.names.map(moduleOf);
  const weight = new Map();
  for (const recording of data.recordings) {
    recording.name.forEach((name, node) => {
      const module = modules[name];
      if (module) weight.set(module, (weight.get(module) ?? 0) + recording.self[node]);
    });
  }
  const ranked = [...weight.keys()].sort((a, b) => weight.get(b) - weight.get(a) || (a < b ? -1 : 1)).slice(0, COLORS.length);
  const colorOf = new Map(ranked.map((module, rank) => [module, COLORS[rank]]));
  return { colors: modules.map((module) => colorOf.get(module) ?? OTHER), legend: [...colorOf, ["other, native, threads", OTHER]] };
}

/** Fold a recording's columns into the tree that is looked at: node 0 is its root, a parent comes before its children.
 *  `thread` is "merged" (same path in any thread = one node), "apart" (a root for each thread), or a thread's index. */
export function foldTree(recording, nameCount, thread) {
  const size = recording.parent.length;
  const tree = { parent: [-1], name: [-1], self: [0] };
  const place = new Int32Array(size).fill(-1);
  const known = new Map();
  for (let node = 0; node < size; node += 1) {
    const isRoot = recording.parent[node] < 0;
    if (isRoot && typeof thread === "number" && recording.thread[node] !== thread) continue;
    const above = isRoot ? 0 : place[recording.parent[node]];
    if (above < 0) continue;
    let at = isRoot && thread !== "apart" ? 0 : known.get(above * nameCount + recording.name[node]);
    if (at === undefined) {
      at = tree.parent.push(above) - 1;
      tree.name.push(recording.name[node]);
      tree.self.push(0);
      known.set(above * nameCount + recording.name[node], at);
    }
    tree.self[at] += recording.self[node];
    place[node] = at;
  }
  return tree;
}

/** Totals, depths, descendants and horizontal places of a folded tree, all as typed arrays; wide siblings stand left. */
export function layTree({ parent, name, self }) {
  const size = parent.length;
  const total = Float64Array.from(self);
  const below = new Int32Array(size);
  const depth = new Int32Array(size);
  const firstChild = new Int32Array(size + 1);
  for (let node = size - 1; node > 0; node -= 1) {
    total[parent[node]] += total[node];
    below[parent[node]] += below[node] + 1;
    firstChild[parent[node] + 1] += 1;
  }
  for (let node = 0; node < size; node += 1) firstChild[node + 1] += firstChild[node];
  const children = new Int32Array(Math.max(0, size - 1));
  const next = firstChild.slice();
  let deepest = 0;
  for (let node = 1; node < size; node += 1) {
    children[next[parent[node]]++] = node;
    depth[node] = depth[parent[node]] + 1;
    deepest = Math.max(deepest, depth[node]);
  }
  const start = new Float64Array(size);
  for (let node = 0; node < size; node += 1) {
    const own = children.subarray(firstChild[node], firstChild[node + 1]);
    if (own.length > 1) own.sort((a, b) => total[b] - total[a] || a - b);
    let left = start[node];
    for (const child of own) {
      start[child] = left;
      left += total[child];
    }
  }
  return { parent, name, self, total, below, depth, firstChild, children, start, deepest, size };
}
