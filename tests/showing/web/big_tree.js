// Flame data of a given number of nodes: 3,000 names, 8 threads, deep and uneven like real stacks, the same every time.
function bigTree(count) {
  let seed = 12345;
  const random = (limit) => {
    seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
    return seed % limit;
  };
  const names = Array.from({ length: 3000 }, (_, at) => `call_${at} (package_${at % 23}/part_${at % 211}.py)`);
  const threads = Array.from({ length: 8 }, (_, at) => `worker-${at}`);
  const tree = { parent: [], name: [], self: [], thread: [] };
  const add = (parent, thread, name) => {
    tree.parent.push(parent);
    tree.name.push(name);
    tree.self.push(random(20) === 0 ? random(400) : random(3));
    tree.thread.push(thread);
  };
  threads.forEach((name, at) => add(-1, at, names.push(name) - 1));
  for (let node = 8; node < count; node += 1) {
    const recent = Math.max(0, node - 1 - random(40));
    const parent = random(5) === 0 ? random(node) : recent;
    add(parent, tree.thread[parent], random(3000));
  }
  const samples = tree.self.reduce((sum, own) => sum + own, 0);
  const facts = { mode: "default", rate_hz: 100, seconds: 60, sample_count: samples, error_count: 0, threads };
  return { schema: 1, title: "big tree", simulated: true, names, recordings: [{ ...facts, ...tree }] };
}
