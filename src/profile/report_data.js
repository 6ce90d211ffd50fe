// report_data.js - the profile in typed arrays, and every sum that a view shows.
//
// Samples lie tile after tile, in time within a tile. Sums are made here from the samples, not taken
// from the file's totals; `checkSums` compares the two, and the page says so when they differ.
// A million samples have to be read and drawn before a reader looks twice: loops over samples touch
// typed arrays and numbers only.

const D = JSON.parse(document.getElementById("data").textContent);
const KINDS = ["exchange", "compute", "synchronization", "idle"];
const EXCHANGE = 0, COMPUTE = 1, SYNC = 2, IDLE = 3;
const ROLES = ["idle", "send", "receive", "send and receive", "partner busy"];

const STEPS = D.steps.map(s => ({ phase: s[0], kind: s[1], operation: D.strings[s[2]], kernel: D.strings[s[3]],
  events: s[4], useful: s[5], physical: s[6], metadata: s[7].map(i => D.strings[i]) }));
const CUT = new Uint8Array(D.tiles.length); // the first sample of the tile lost its beginning
for (const t of D.cut) CUT[t] = 1;

// Own horizon of a tile in an exchange step: it leaves its row then. OWN[step]: null or by tile.
const OWN = STEPS.map((s, step) => D.lanes[step] ? Uint32Array.from(D.lanes[step].own) : null);
const lanesMade = {};
function lanesOf(step) {
  if (!lanesMade[step]) {
    const text = atob(D.lanes[step].bins);
    lanesMade[step] = Uint8Array.from({ length: text.length }, (_, i) => text.charCodeAt(i));
  }
  return lanesMade[step];
}

// Per sample: zigzag step difference * 2 + (1: an epoch follows), gap, duration; all as LEB128. Waits of
// exchanges are what a tile's time there exceeds its own events by; synchronization and idling wait all
// the time.
function decodeSamples() {
  const text = atob(D.samples), n = D.sampleCount, tiles = D.tiles.length;
  const S = { n, step: new Uint32Array(n), start: new Uint32Array(n), duration: new Uint32Array(n),
              epoch: new Uint32Array(n), tile: new Uint16Array(n), first: new Uint32Array(tiles + 1), wait: new Uint32Array(n), epochs: 1, longest: 0 };
  const kinds = Uint8Array.from(STEPS, s => s.kind), events = Uint32Array.from(STEPS, s => s.events);
  let at = 0, i = 0;
  const more = value => { // the rest of a number that does not fit into one byte
    let shift = 7, byte, all = value & 127;
    do { byte = text.charCodeAt(at++); all += (byte & 127) * 2 ** shift; shift += 7; } while (byte & 128);
    return all;
  };
  for (let t = 0; t < tiles; t++) {
    let step = 0, now = 0, epoch = 0;
    S.first[t] = i;
    for (const end = i + D.counts[t]; i < end; i++) {
      let head = text.charCodeAt(at++);
      if (head & 128) head = more(head);
      step += head & 2 ? -((head >>> 2) + 1) : head >>> 2;
      if (head & 1) { epoch = text.charCodeAt(at++); if (epoch & 128) epoch = more(epoch); if (epoch >= S.epochs) S.epochs = epoch + 1; }
      let gap = text.charCodeAt(at++);
      if (gap & 128) gap = more(gap);
      let duration = text.charCodeAt(at++);
      if (duration & 128) duration = more(duration);
      now += gap;
      S.tile[i] = t; S.step[i] = step; S.epoch[i] = epoch; S.start[i] = now; S.duration[i] = duration;
      now += duration;
      if (duration > S.longest) S.longest = duration;
      const kind = kinds[step];
      if (kind >= SYNC) S.wait[i] = duration;
      else if (kind === EXCHANGE) {
        const own = (OWN[step] && OWN[step][t]) || events[step];
        if (duration > own) S.wait[i] = duration - own;
      }
    }
  }
  S.first[tiles] = i;
  return S;
}
const S = decodeSamples();
const KIND_OF = Uint8Array.from(STEPS, s => s.kind);
const eventsOf = i => (OWN[S.step[i]] && OWN[S.step[i]][S.tile[i]]) || STEPS[S.step[i]].events;

// What is looked at: by step (Uint8Array, null: all) and by time (null: all).
const everything = { steps: null, from: -1, to: Infinity };

// The tile's first sample that is not over at the cycle.
function firstEndingAfter(t, cycle) {
  let low = S.first[t], high = S.first[t + 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (S.start[middle] + S.duration[middle] > cycle) high = middle; else low = middle + 1;
  }
  return low;
}

// All samples by start, for unions: radix sort, made when first wanted.
let orderMade = null;
function order() {
  if (orderMade) return orderMade;
  const start = S.start;
  let from = new Uint32Array(S.n), to = new Uint32Array(S.n);
  for (let i = 0; i < S.n; i++) from[i] = i;
  for (let shift = 0; D.span >>> shift; shift += 11) {
    const ends = new Uint32Array(2048);
    for (let i = 0; i < S.n; i++) ends[start[i] >>> shift & 2047]++;
    for (let b = 0, at = 0; b < 2048; b++) { const n = ends[b]; ends[b] = at; at += n; }
    for (let k = 0; k < S.n; k++) { const i = from[k]; to[ends[start[i] >>> shift & 2047]++] = i; }
    [from, to] = [to, from];
    if (shift === 22) break;
  }
  return orderMade = from;
}

// Where in that order the samples begin that may reach beyond the cycle.
function firstReaching(sorted, cycle) {
  let low = 0, high = S.n;
  while (low < high) { const middle = (low + high) >> 1; if (S.start[sorted[middle]] + S.longest > cycle) high = middle; else low = middle + 1; }
  return low;
}

// key(step, index) -> name; groups of the samples that `look` wants. Cycles are the length of the union.
function groups(key, look = everything) {
  const names = new Map(), of = Uint32Array.from(STEPS, (s, i) => {
    const name = key(s, i);
    if (!names.has(name)) names.set(name, names.size);
    return names.get(name);
  });
  const n = names.size, tiles = D.tiles.length, make = type => new type(n);
  const samples = make(Float64Array), work = make(Float64Array), wait = make(Float64Array), cycles = make(Float64Array);
  const last = make(Float64Array).fill(-1), first = make(Float64Array), max = make(Float64Array);
  const useful = make(Float64Array), physical = make(Float64Array), measured = make(Float64Array);
  const here = new Uint8Array(n * tiles), count = make(Uint32Array), wantedSteps = look.steps;
  const usefulOf = Float64Array.from(STEPS, s => s.useful), physicalOf = Float64Array.from(STEPS, s => s.physical);
  const sorted = order(), { step, start, duration, tile } = S, { from, to } = look;
  for (let k = firstReaching(sorted, from); k < S.n; k++) {
    const i = sorted[k], s = step[i], begin = start[i], d = duration[i], end = begin + d;
    if (begin >= to) break;
    if (end <= from || (wantedSteps && !wantedSteps[s])) continue;
    const g = of[s], t = tile[i];
    if (!samples[g]) first[g] = begin;
    samples[g]++;
    if (end > last[g]) { cycles[g] += end - (begin > last[g] ? begin : last[g]); last[g] = end; }
    work[g] += d; wait[g] += S.wait[i];
    if (d > max[g]) max[g] = d;
    if (!here[g * tiles + t]) { here[g * tiles + t] = 1; count[g]++; }
    if (usefulOf[s] >= 0 && !(CUT[t] && i === S.first[t])) { useful[g] += usefulOf[s]; physical[g] += physicalOf[s]; measured[g] += d; }
  }
  return [...names].map(([name, g]) => ({ name, samples: samples[g], work: work[g], wait: wait[g], cycles: cycles[g], last: last[g], first: first[g],
    max: max[g], useful: useful[g], physical: physical[g], measured: measured[g], tiles: count[g] })).filter(g => g.samples);
}

// Tiles by kind in each of n bins of the whole run: mean number of tiles; row 4: waits of exchanges. What
// lies between the ends of a sample is added as a difference, so that long samples cost no more.
function coverage(n, wantedSteps) {
  const rows = [0, 1, 2, 3, 4].map(() => new Float64Array(n + 1)), differences = [0, 1, 2, 3, 4].map(() => new Float64Array(n + 2));
  const scale = n / D.span;
  const add = (k, a, b) => {
    a *= scale; b *= scale;
    const row = rows[k], first = Math.floor(a), last = Math.floor(b);
    if (first === last) { row[first] += b - a; return; }
    row[first] += first + 1 - a; row[last] += b - last;
    differences[k][first + 1]++; differences[k][last]--;
  };
  for (let i = 0; i < S.n; i++) {
    if (wantedSteps && !wantedSteps[S.step[i]]) continue;
    const kind = KIND_OF[S.step[i]], start = S.start[i], end = start + S.duration[i];
    if (end === start) continue;
    if (kind !== EXCHANGE) { add(kind, start, end); continue; }
    const until = start + S.wait[i];
    if (until > start) add(4, start, until);
    if (end > until) add(EXCHANGE, until, end);
  }
  return rows.map((row, k) => {
    let sum = 0;
    for (let x = 0; x < n; x++) { sum += differences[k][x]; row[x] += sum; }
    row[n - 1] += row[n]; // nothing but rounding at the very end
    return row.subarray(0, n);
  });
}

// Work by operation, kernel and phase. Steps and epochs are summed up first: there are few of them.
function flameTree(look = everything) {
  const sums = new Map(), { step, epoch, start, duration, epochs } = S;
  const table = epochs * STEPS.length < 4e6 ? new Float64Array(epochs * STEPS.length) : null;
  for (let t = 0; t < D.tiles.length; t++) for (let i = firstEndingAfter(t, look.from), end = S.first[t + 1]; i < end && start[i] < look.to; i++) {
    if (look.steps && !look.steps[step[i]]) continue;
    const key = step[i] * epochs + epoch[i];
    if (table) table[key] += duration[i]; else sums.set(key, (sums.get(key) || 0) + duration[i]);
  }
  if (table) table.forEach((work, key) => { if (work) sums.set(key, work); });
  const root = { name: "all", work: 0, children: new Map() };
  const child = (node, name, more) => {
    if (!node.children.has(name)) node.children.set(name, { name, work: 0, children: new Map(), parent: node, ...more });
    return node.children.get(name);
  };
  for (const [key, work] of sums) {
    const index = Math.floor(key / epochs), turn = key % epochs, s = STEPS[index];
    const phase = (s.phase >= 0x80000000 ? "exchange " + (s.phase - 0x80000000) : "step " + s.phase) + (turn ? " / " + turn : "");
    const a = child(root, s.operation), b = child(a, s.kernel, { kind: s.kind, kernel: s.kernel });
    const c = child(b, phase, { kind: s.kind, kernel: s.kernel, step: index });
    root.work += work; a.work += work; b.work += work; c.work += work;
  }
  return root;
}

// --- levels of detail: what a tile mostly does in each of n equal stretches of the run
//
// A cell holds 2 * step + 1, or 2 * step + 2 where it waits at the step's boundary; 0: nothing. Whatever takes
// most of the stretch has it. Rows of tiles are made when they are first drawn.

const Cell = 2 * STEPS.length + 3 < 65536 ? Uint16Array : Uint32Array, CELLS_LIMIT = 1 << 24;
const levels = new Map();
function levelOf(n) {
  if (!levels.has(n)) levels.set(n, { n, cells: new Cell(n * D.tiles.length), made: new Uint8Array(D.tiles.length), best: new Float64Array(n) });
  return levels.get(n);
}
function fillRow(level, t) {
  const { n, cells, best } = level, base = t * n, scale = n / D.span;
  level.made[t] = 1;
  best.fill(0);
  const put = (a, b, value) => {
    a *= scale; b *= scale;
    const first = Math.floor(a), last = Math.min(n - 1, Math.floor(b));
    if (first >= n) return;
    const head = Math.min(b, first + 1) - a;
    if (head > best[first]) { best[first] = head; cells[base + first] = value; }
    if (last === first) return;
    for (let k = first + 1; k < last; k++) cells[base + k] = value;
    if (b - last > best[last]) { best[last] = b - last; cells[base + last] = value; }
  };
  for (let i = S.first[t]; i < S.first[t + 1]; i++) {
    const start = S.start[i], until = start + (KIND_OF[S.step[i]] === EXCHANGE ? S.wait[i] : 0), value = 2 * S.step[i] + 1;
    if (until > start) put(start, until, value + 1);
    put(until, start + S.duration[i], value);
  }
}

// What every view shows, against the totals that the file's own reader made.
function checkSums() {
  const total = list => list.reduce((sum, g) => sum + g.work, 0);
  const kernels = groups(s => s.kernel), kinds = groups(s => KINDS[s.kind]), operations = groups(s => s.operation);
  let tiles = 0, exchanges = 0, expected = 0;
  for (let i = 0; i < S.n; i++) tiles += S.duration[i];
  const bins = 1000, rows = coverage(bins, null);
  const overview = rows.reduce((sum, row) => sum + row.reduce((a, b) => a + b, 0), 0) * D.span / bins;
  for (const e of D.exchanges) exchanges += e.roles.reduce((a, b) => a + b, 0);
  for (let i = 0; i < S.n; i++)
    if (KIND_OF[S.step[i]] === EXCHANGE && OWN[S.step[i]]) expected += OWN[S.step[i]][S.tile[i]];
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
