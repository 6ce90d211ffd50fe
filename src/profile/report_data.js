// report_data.js - the profile in typed arrays, and every sum that a view shows.
//
// Samples lie tile after tile, in time within a tile. Sums are made here from the samples, not taken
// from the file's totals; `checkSums` compares the two, and the page says so when they differ.

const D = JSON.parse(document.getElementById("data").textContent);
const KINDS = ["exchange", "compute", "synchronization", "idle"];
const EXCHANGE = 0, COMPUTE = 1, SYNC = 2;
const ROLES = ["idle", "send", "receive", "send and receive", "partner busy"];

function bytesOf(base64) {
  const text = atob(base64), out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
}

// Per sample: zigzag step difference * 2 + (1: an epoch follows), gap, duration; all as LEB128.
function decodeSamples() {
  const bytes = bytesOf(D.samples), n = D.sampleCount, tiles = D.tiles.length;
  const S = { n, step: new Uint32Array(n), start: new Float64Array(n), duration: new Float64Array(n),
              epoch: new Uint32Array(n), tile: new Uint32Array(n), first: new Uint32Array(tiles + 1),
              wait: new Float64Array(n) };
  let at = 0, i = 0;
  const next = () => {
    let value = 0, scale = 1, byte;
    do { byte = bytes[at++]; value += (byte & 127) * scale; scale *= 128; } while (byte & 128);
    return value;
  };
  for (let t = 0; t < tiles; t++) {
    let step = 0, now = 0, epoch = 0;
    S.first[t] = i;
    for (let k = 0; k < D.counts[t]; k++, i++) {
      const head = next(), zigzag = Math.floor(head / 2);
      step += zigzag & 1 ? -(zigzag + 1) / 2 : zigzag / 2;
      if (head & 1) epoch = next();
      now += next();
      S.tile[i] = t; S.step[i] = step; S.epoch[i] = epoch; S.start[i] = now;
      now += S.duration[i] = next();
    }
  }
  S.first[tiles] = i;
  return S;
}

const STEPS = D.steps.map(s => ({ phase: s[0], kind: s[1], operation: D.strings[s[2]], kernel: D.strings[s[3]],
  events: s[4], useful: s[5], physical: s[6], metadata: s[7].map(i => D.strings[i]) }));
for (const s of STEPS)
  s.text = [s.operation, s.kernel, ...s.metadata].join("\n").toLowerCase();
const S = decodeSamples();
const CUT = new Set(D.cut);

// Own horizon of a tile in an exchange step: it leaves its row then.
const OWN = {};
for (const step in D.lanes) {
  const lane = D.lanes[step];
  OWN[step] = { own: lane.own, bins: bytesOf(lane.bins) };
}
function eventsOf(i) {
  const lane = OWN[S.step[i]], own = lane ? lane.own[S.tile[i]] : 0;
  return own || STEPS[S.step[i]].events;
}
for (let i = 0; i < S.n; i++) {
  const kind = STEPS[S.step[i]].kind;
  S.wait[i] = kind === SYNC || kind === 3 ? S.duration[i]
    : kind === EXCHANGE ? Math.max(0, S.duration[i] - eventsOf(i)) : 0;
}

// All samples by start, for unions: radix sort, made when first wanted.
let orderMade = null;
function order() {
  if (orderMade) return orderMade;
  let from = new Uint32Array(S.n), to = new Uint32Array(S.n);
  for (let i = 0; i < S.n; i++) from[i] = i;
  for (let shift = 0; shift < 33; shift += 11) {
    const ends = new Uint32Array(2048), digit = i => Math.floor(S.start[i] / 2 ** shift) & 2047;
    for (let i = 0; i < S.n; i++) ends[digit(i)]++;
    for (let b = 0, at = 0; b < 2048; b++) { const n = ends[b]; ends[b] = at; at += n; }
    for (let k = 0; k < S.n; k++) to[ends[digit(from[k])]++] = from[k];
    [from, to] = [to, from];
  }
  return orderMade = from;
}

// key(step index) -> name. Only samples that `wanted(i)` says.
function groups(key, wanted) {
  const names = STEPS.map((s, i) => key(s, i)), out = new Map();
  const of = names.map(name => {
    if (!out.has(name))
      out.set(name, { name, samples: 0, work: 0, wait: 0, cycles: 0, last: -1, first: 0, max: 0, useful: 0,
                      physical: 0, measured: 0, tiles: new Set() });
    return out.get(name);
  });
  const sorted = order();
  for (let k = 0; k < S.n; k++) {
    const i = sorted[k];
    if (wanted && !wanted(i)) continue;
    const step = S.step[i], g = of[step], duration = S.duration[i], end = S.start[i] + duration;
    if (!g.samples) g.first = S.start[i];
    g.samples++;
    if (end > g.last) { g.cycles += end - Math.max(g.last, S.start[i]); g.last = end; }
    g.work += duration; g.wait += S.wait[i];
    if (duration > g.max) g.max = duration;
    g.tiles.add(S.tile[i]);
    const useful = STEPS[step].useful;
    if (useful >= 0 && !(CUT.has(S.tile[i]) && i === S.first[S.tile[i]])) {
      g.useful += useful; g.physical += STEPS[step].physical; g.measured += duration;
    }
  }
  return [...out.values()].filter(g => g.samples);
}

// Tiles by kind in each of n bins of [from, to): mean number of tiles. Waits of exchanges apart.
function coverage(n, from, to, wanted) {
  const rows = [0, 1, 2, 3, 4].map(() => new Float64Array(n)), scale = n / (to - from);
  const add = (row, a, b) => {
    a = Math.max(0, (a - from) * scale); b = Math.min(n, (b - from) * scale);
    if (!(b > a)) return;
    const first = Math.floor(a), last = Math.min(n - 1, Math.floor(b));
    if (first === last) { row[first] += b - a; return; }
    row[first] += first + 1 - a;
    for (let k = first + 1; k < last; k++) row[k]++;
    row[last] += b - last;
  };
  for (let i = 0; i < S.n; i++) {
    if (S.start[i] >= to || S.start[i] + S.duration[i] <= from || (wanted && !wanted(i))) continue;
    const kind = STEPS[S.step[i]].kind, end = S.start[i] + S.duration[i];
    if (kind !== EXCHANGE) { add(rows[kind], S.start[i], end); continue; }
    add(rows[4], S.start[i], S.start[i] + S.wait[i]);
    add(rows[EXCHANGE], S.start[i] + S.wait[i], end);
  }
  return rows;
}

function flameTree(wanted) {
  const root = { name: "all", work: 0, children: new Map() };
  const child = (node, name, more) => {
    if (!node.children.has(name)) node.children.set(name, { name, work: 0, children: new Map(), parent: node, ...more });
    return node.children.get(name);
  };
  for (let i = 0; i < S.n; i++) {
    if (wanted && !wanted(i)) continue;
    const s = STEPS[S.step[i]], d = S.duration[i];
    const phase = (s.phase >= 0x80000000 ? "exchange " + (s.phase - 0x80000000) : "step " + s.phase) +
      (S.epoch[i] ? " / " + S.epoch[i] : "");
    const a = child(root, s.operation), b = child(a, s.kernel, { kind: s.kind, kernel: s.kernel });
    const c = child(b, phase, { kind: s.kind, kernel: s.kernel, step: S.step[i] });
    root.work += d; a.work += d; b.work += d; c.work += d;
  }
  return root;
}

// What every view shows, against the totals that the file's own reader made.
function checkSums() {
  const total = list => list.reduce((sum, g) => sum + g.work, 0);
  const kernels = groups(s => s.kernel), kinds = groups(s => KINDS[s.kind]), operations = groups(s => s.operation);
  let tiles = 0, exchanges = 0, expected = 0;
  for (let i = 0; i < S.n; i++) tiles += S.duration[i];
  const bins = 1000, rows = coverage(bins, 0, D.span);
  const overview = rows.reduce((sum, row) => sum + row.reduce((a, b) => a + b, 0), 0) * D.span / bins;
  for (const e of D.exchanges) exchanges += e.roles.reduce((a, b) => a + b, 0);
  for (let i = 0; i < S.n; i++)
    if (STEPS[S.step[i]].kind === EXCHANGE && OWN[S.step[i]]) expected += OWN[S.step[i]].own[S.tile[i]];
  const sums = { file: D.totals.work, tiles, kernels: total(kernels), kinds: total(kinds), operations: total(operations),
                 flame: flameTree().work, overview: Math.round(overview), samples: S.n };
  let ok = S.n === D.totals.samples && exchanges === expected;
  for (const name of ["tiles", "kernels", "kinds", "operations", "flame", "overview"]) ok = ok && sums[name] === sums.file;
  for (const g of D.totals.kernels) {
    const mine = kernels.find(k => k.name === g[0]);
    ok = ok && mine && mine.samples === g[1] && mine.work === g[2] && mine.cycles === g[3] && mine.wait === g[4];
  }
  return { ok: !!ok, sums };
}
