// report_views.js - the canvases and tables, and what mouse and keys do to them.
//
// One state, one `draw`; every input changes the state and asks for a frame.

const $ = id => document.getElementById(id);
const COLOURS = { 0: "#17854c", 1: "#cf3f4a", 2: "#c58b24", get 3() { return isDark() ? "#39424a" : "#ffffff"; }, get wait() { return isDark() ? "#5f8f86" : "#8ebeb4"; } };
const isDark = () => document.documentElement.dataset.theme === "dark";
const LANES = ["#8ebeb4", "#17854c", "#287db2", "#6b5596", "#9a547f"];
const state = { from: 0, to: D.span, top: 0, row: 0, kind: "", search: "", colour: "kind", selected: -1, focus: null,
                tab: 0, undo: [], sort: {}, exchange: 0, flame: null };
const format = n => Math.round(n).toLocaleString("en-US").replace(/,/g, "\u202f");
const percent = (a, b) => b > 0 ? (100 * a / b).toFixed(1) + " %" : "-";
const escape = text => String(text).replace(/[&<>"]/g, c => "&#" + c.charCodeAt(0) + ";");
const time = cycles => (cycles / D.clockHz * 1e6).toFixed(2) + " \u00b5s";

// --- what is wanted

let wantedSteps = null, wantedVersion = 0; // per step, or null: all
for (const s of STEPS) s.text = [s.operation, s.kernel, ...s.metadata].join("\n").toLowerCase();
function updateWanted() {
  const words = state.search.toLowerCase().split(/\s+/).filter(Boolean), focus = state.focus;
  wantedSteps = words.length || state.kind !== "" || focus ? STEPS.map((s, i) =>
    (state.kind === "" || s.kind === +state.kind) && words.every(w => s.text.includes(w)) && (!focus || focus.test(s, i))) : null;
  wantedVersion++;
}
const look = ranged => ({ steps: wantedSteps, from: ranged ? state.from : -1, to: ranged ? state.to : Infinity });

// --- colours

function hueOf(text) {
  let hash = 2166136261;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  return (hash >>> 0) % 360;
}
function hsl(hue, light) {
  const f = n => { const k = (n + hue / 30) % 12, a = 0.5 * Math.min(light, 1 - light);
    return Math.round(255 * (light - a * Math.max(-1, Math.min(k - 3, 9 - k, 1)))); };
  return "#" + [f(0), f(8), f(4)].map(v => v.toString(16).padStart(2, "0")).join("");
}
function colourOf(step) {
  if (state.colour === "kind" || step.kind !== COMPUTE) return COLOURS[step.kind];
  return hsl(hueOf(state.colour === "kernel" ? step.kernel : step.operation), 0.5);
}
const packed = hex => (255 << 24 | parseInt(hex.slice(5, 7), 16) << 16 | parseInt(hex.slice(3, 5), 16) << 8 | parseInt(hex.slice(1, 3), 16)) >>> 0;
let theme = { name: null };
function css(name) { // of the theme that is on; asked for in every frame
  if (theme.name !== document.documentElement.dataset.theme) theme = { name: document.documentElement.dataset.theme };
  return theme[name] || (theme[name] = getComputedStyle(document.documentElement).getPropertyValue(name).trim());
}
const mix = (a, b, part) => "#" + [1, 3, 5].map(i => Math.round(parseInt(a.slice(i, i + 2), 16) * (1 - part) +
  parseInt(b.slice(i, i + 2), 16) * part).toString(16).padStart(2, "0")).join("");
const full = hex => hex.length === 4 ? "#" + [...hex.slice(1)].map(c => c + c).join("") : hex;

function size(canvas, height) {
  const ratio = window.devicePixelRatio || 1, w = Math.max(1, Math.round(canvas.clientWidth * ratio));
  if (height) canvas.style.height = height + "px";
  const h = Math.max(1, Math.round(canvas.clientHeight * ratio));
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
  return [canvas.getContext("2d"), w, h, ratio];
}

// --- overview

let overviewCache = { key: "" };
function drawOverview() {
  const [c, w, h, ratio] = size($("overview")), key = [w, h, wantedVersion, document.documentElement.dataset.theme].join("|");
  if (overviewCache.key !== key) overviewCache = { key, image: stackOverview(c, w, h, coverage(w, wantedSteps)) };
  c.putImageData(overviewCache.image, 0, 0);
  const a = state.from / D.span * w, b = state.to / D.span * w;
  c.fillStyle = "#0003"; c.fillRect(0, 0, a, h); c.fillRect(b, 0, w - b, h);
  c.strokeStyle = css("--select"); c.lineWidth = 2 * ratio; c.strokeRect(a, 0, Math.max(1, b - a), h);
  if (state.dragging && state.dragging.in === "overview") drawDrag(c, h, w, 0, D.span);
}

function stackOverview(c, w, h, rows) {
  const stack = [[1, COLOURS[1]], [0, COLOURS[0]], [4, COLOURS.wait], [2, COLOURS[2]], [3, COLOURS[3]]], image = c.createImageData(w, h);
  const pixels = new Uint32Array(image.data.buffer);
  pixels.fill(packed(full(css("--paper"))));
  for (let x = 0; x < w; x++) {
    let sum = 0;
    for (const [row, colour] of stack) {
      const low = Math.round(sum / D.tiles.length * h), value = packed(colour);
      sum += rows[row][x];
      for (let y = low; y < Math.min(h, Math.round(sum / D.tiles.length * h)); y++) pixels[(h - 1 - y) * w + x] = value;
    }
  }
  return image;
}

function drawDrag(c, h, w, from, to) {
  const a = (state.dragging.a - from) / (to - from) * w, b = (state.dragging.b - from) / (to - from) * w;
  c.fillStyle = "#0057ff33"; c.fillRect(Math.min(a, b), 0, Math.abs(a - b), h);
}

// --- tiles by time

// Colour by cell (report_data.js, levels of detail): nothing, then every step's own and its wait's.
let palette = { key: "" };
function colours() {
  const key = [state.colour, wantedVersion, document.documentElement.dataset.theme].join("|");
  if (palette.key === key) return palette.values;
  const paper = full(css("--paper")), values = new Uint32Array(2 * STEPS.length + 1), wait = packed(COLOURS.wait), dimmed = packed(mix(COLOURS.wait, paper, 0.8));
  values[0] = packed(paper);
  STEPS.forEach((s, i) => {
    const on = !wantedSteps || wantedSteps[i], colour = colourOf(s);
    values[2 * i + 1] = packed(on ? colour : mix(colour, paper, 0.85));
    values[2 * i + 2] = on ? wait : dimmed;
  });
  palette = { key, values };
  return values;
}

// Height of a tile's row in pixels of the screen, not always whole; state.row 0: what fills the space.
function rowHeight() {
  const ratio = window.devicePixelRatio || 1, room = ($("timeline").clientHeight - 18) * ratio;
  return Math.max(1, state.row ? Math.round(state.row * ratio) : Math.min(24 * ratio, room / D.tiles.length));
}

// Where many samples share a pixel, cells are drawn: a look-up for every pixel, whatever the number of samples.
// Else the samples themselves; the longest of those that share a pixel has it.
const FEW_SAMPLES = 60000;
let picture = null;
function drawTimeline() {
  const [c, w, h, ratio] = size($("timeline")), axis = Math.round(18 * ratio), values = colours();
  if (!picture || picture.image.width !== w || picture.image.height !== h) {
    const image = c.createImageData(w, h);
    picture = { image, pixels: new Uint32Array(image.data.buffer), longest: new Float64Array(w), cell: new Uint32Array(w) };
  }
  const pixels = picture.pixels, row = rowHeight(), gap = row >= 10 ? 1 : 0;
  const rows = Math.min(Math.ceil((h - axis) / row), D.tiles.length - state.top), part = (state.to - state.from) / D.span;
  const n = 2 ** Math.max(10, Math.ceil(Math.log2(w / part))), cells = S.n * part * rows / D.tiles.length > FEW_SAMPLES && n * D.tiles.length <= CELLS_LIMIT;
  const level = cells ? levelOf(n) : null;
  if (cells) for (let x = 0; x < w; x++) picture.cell[x] = Math.min(n - 1, Math.floor((state.from + (x + 0.5) / w * (state.to - state.from)) / D.span * n));
  pixels.fill(values[0]);
  for (let r = 0; r < rows; r++) {
    const y = axis + Math.round(r * row), base = y * w, below = axis + Math.round((r + 1) * row) - gap;
    if (y >= h) break;
    if (cells) drawCells(level, state.top + r, base, w, values); else drawSamples(state.top + r, base, w, values);
    for (let k = y + 1; k < below && k < h; k++) pixels.copyWithin(k * w, base, base + w);
  }
  c.putImageData(picture.image, 0, 0);
  drawSelected(c, w, axis, row);
  drawAxis(c, w, axis, ratio);
  drawTileNumbers(axis, row, rows);
  if (state.dragging && state.dragging.in === "timeline") drawDrag(c, h, w, state.from, state.to);
  const visible = Math.max(1, Math.floor((h - axis) / row)), bar = $("bar").clientHeight;
  $("thumb").style.height = Math.min(bar, Math.max(18, bar * visible / D.tiles.length)) + "px";
  $("thumb").style.top = Math.min(bar - 18, bar * state.top / D.tiles.length) + "px";
  state.visible = visible;
  document.body.dataset.detail = cells ? "cells" : "samples";
}

function drawCells(level, t, base, w, values) {
  if (!level.made[t]) fillRow(level, t);
  const { pixels, cell } = picture, cells = level.cells, from = t * level.n;
  for (let x = 0; x < w; x++) pixels[base + x] = values[cells[from + cell[x]]];
}

function drawSamples(t, base, w, values) {
  const { pixels, longest } = picture, { step, start, duration, wait } = S, from = state.from, to = state.to, scale = w / (to - from);
  longest.fill(0);
  for (let i = firstEndingAfter(t, from), end = S.first[t + 1]; i < end && start[i] < to; i++) {
    const d = duration[i], s = step[i], a = (start[i] - from) * scale, colour = values[2 * s + 1];
    const x0 = a > 0 ? a | 0 : 0, b = Math.min(w, a + d * scale) | 0, x1 = b > x0 ? b : x0 + 1;
    if (x1 - x0 === 1) {
      if (x0 < w && longest[x0] < d) { longest[x0] = d; pixels[base + x0] = colour; }
      continue;
    }
    pixels.fill(colour, base + x0, base + x1);
    longest.fill(d, x0, x1);
    if (KIND_OF[s] !== EXCHANGE || !wait[i]) continue;
    const until = Math.min(x1, a + wait[i] * scale | 0);
    if (until > x0) pixels.fill(values[2 * s + 2], base + x0, base + until);
  }
}

function drawSelected(c, w, axis, row) {
  const i = state.selected, y = i < 0 ? -1 : axis + Math.round((S.tile[i] - state.top) * row);
  if (y < axis) return;
  const scale = w / (state.to - state.from), x = (S.start[i] - state.from) * scale;
  c.fillStyle = css("--select");
  c.fillRect(x, y, Math.max(2, S.duration[i] * scale), Math.max(2, row));
}

function drawAxis(c, w, axis, ratio) {
  const width = state.to - state.from, raw = width / (w / (120 * ratio)), power = 10 ** Math.floor(Math.log10(Math.max(1, raw)));
  const step = [1, 2, 5, 10].map(k => k * power).find(k => k >= raw) || power * 10;
  c.fillStyle = css("--box"); c.fillRect(0, 0, w, axis);
  c.fillStyle = css("--soft"); c.font = 11 * ratio + "px system-ui, sans-serif"; c.textBaseline = "middle";
  for (let at = Math.ceil(state.from / step) * step; at < state.to; at += step) {
    const x = (at - state.from) / width * w;
    c.fillRect(x, axis - 5 * ratio, ratio, 5 * ratio);
    c.fillText(format(at), x + 4 * ratio, axis / 2);
  }
}

// Logical tiles beside their rows, as many as there is room for.
function drawTileNumbers(axis, row, rows) {
  const [c, w, h, ratio] = size($("axis")), every = [1, 2, 5, 10, 20, 50, 100, 200].find(k => k * row >= 16 * ratio) || 500;
  c.fillStyle = css("--box"); c.fillRect(0, 0, w, h);
  c.fillStyle = css("--soft"); c.font = 11 * ratio + "px system-ui, sans-serif"; c.textBaseline = "middle"; c.textAlign = "right";
  c.fillText("tile", w - 6 * ratio, axis / 2);
  for (let t = Math.ceil(state.top / every) * every; t < state.top + rows; t += every) {
    const y = axis + (t - state.top + 0.5) * row;
    c.fillText(t, w - 6 * ratio, Math.max(y, axis + 6 * ratio)); c.fillRect(w - 3 * ratio, y, 3 * ratio, ratio);
  }
}

function sampleAt(event) {
  const box = $("timeline").getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
  const row = rowHeight(), y = (event.clientY - box.top) * ratio - Math.round(18 * ratio);
  const t = state.top + Math.floor(y / row), cycle = state.from + (event.clientX - box.left) / box.width * (state.to - state.from);
  if (y < 0 || t < 0 || t >= D.tiles.length) return -1;
  const i = firstEndingAfter(t, cycle);
  return i < S.first[t + 1] && S.start[i] <= cycle ? i : -1;
}

// --- details

function rowsOf(i) {
  const s = STEPS[S.step[i]], d = S.duration[i];
  const rows = [["operation", s.operation], ["kernel", s.kernel], ["kind", KINDS[s.kind]], ["tile", "physical " + D.tiles[S.tile[i]] + ", logical " + S.tile[i]],
    ["begins", format(S.start[i])], ["cycles", format(d) + " (" + time(d) + ")"]];
  if (S.wait[i]) rows.push(["of them waiting", format(S.wait[i]) + " (" + percent(S.wait[i], d) + ")"]);
  if (s.kind === EXCHANGE) rows.push(["events", format(eventsOf(i)) + " of the phase's " + format(s.events)]);
  if (S.epoch[i]) rows.push(["iteration", S.epoch[i]]);
  if (s.useful >= 0) rows.push(["useful work", format(s.useful) + " cycles, " + percent(s.useful, d) + " of the time"], ["lanes with data", percent(s.useful, s.physical)]);
  return rows;
}
function drawDetails() {
  const i = state.selected, focus = state.focus;
  let html = "";
  if (focus) html += "<h2>" + escape(focus.label) + "</h2><p><a data-clear=1>show everything</a></p>";
  if (i < 0) {
    html += focus ? "" : "<h2>Nothing selected</h2><p>Click a step of a tile, or a row of a table. Drag to zoom, right click to go back.</p>";
    $("details").innerHTML = html;
    return;
  }
  const s = STEPS[S.step[i]], meta = [];
  for (let m = 0; m < s.metadata.length; m += 2) meta.push([s.metadata[m], s.metadata[m + 1]]);
  const table = rows => "<table>" + rows.map(r => "<tr><td>" + escape(r[0]) + "</td><td>" + escape(r[1]) + "</td></tr>").join("") + "</table>";
  html += table(rowsOf(i)) + "<p><a data-focus=operation>only this operation</a> &middot; <a data-focus=kernel>only this kernel</a> &middot; <a data-focus=step>only this step</a>" +
    (s.kind === EXCHANGE ? " &middot; <a data-lanes=1>lanes</a>" : "") + "</p>" + table(meta);
  $("details").innerHTML = html;
}
$("details").addEventListener("click", event => {
  const link = event.target.closest("a");
  if (!link) return;
  const i = state.selected, s = i >= 0 ? STEPS[S.step[i]] : null, index = i >= 0 ? S.step[i] : -1;
  if (link.dataset.clear) setFocus(null);
  if (link.dataset.focus === "operation") setFocus(focusOn("operation", s.operation));
  if (link.dataset.focus === "kernel") setFocus(focusOn("kernel", s.kernel));
  if (link.dataset.focus === "step") setFocus({ label: "step " + index + " of " + s.operation, test: (_, k) => k === index });
  if (link.dataset.lanes) { state.tab = 3; state.exchange = Math.max(0, D.exchanges.findIndex(e => e.step === index && e.epoch === S.epoch[i])); ask(true); }
});
const focusOn = (field, value) => ({ label: field + " " + value, key: field + value, test: s => s[field] === value });
function setFocus(focus) { state.focus = focus; updateWanted(); ask(true); }

// --- tables

const GROUP_COLUMNS = [["name", g => g.name], ["samples", g => g.samples], ["tiles", g => g.tiles], ["cycles", g => g.cycles],
  ["of run", g => g.cycles / D.span, "%"], ["work", g => g.work], ["waits", g => g.work ? g.wait / g.work : 0, "%"],
  ["active tiles", g => g.cycles ? g.work / g.cycles : 0, 1], ["longest", g => g.max],
  ["useful", g => g.measured ? g.useful / g.measured : -1, "%meter"], ["lanes", g => g.measured && g.physical ? g.useful / g.physical : -1, "%"],
  ["device", g => g.measured ? g.useful / (g.cycles * D.tiles.length) : -1, "%"]];
const PLAN_COLUMNS = [["operation", g => g.name], ["cycles", g => g.cycles], ["predicted", g => g.predicted, "?"],
  ["difference", g => g.predicted > 0 ? g.cycles / g.predicted - 1 : null, "+%"], ["exchange, sync", g => g.exchange],
  ["predicted exchange", g => g.predictedExchange, "?"], ["work", g => g.work], ["waits", g => g.work ? g.wait / g.work : 0, "%"]];
const EXCHANGE_COLUMNS = [["exchange", e => e.phase + (e.epoch ? " / " + e.epoch : "")], ["operation", e => D.strings[e.operation]], ["tiles", e => e.tiles],
  ["begins", e => e.first], ["measured", e => e.measured], ["arrival spread", e => e.arrival], ["horizon", e => e.scheduled], ["bound", e => e.bound],
  ["horizon / bound", e => e.bound ? e.scheduled / e.bound : null, 3], ["boundary", e => e.boundary],
  ["sending", e => part(e, [1, 3]), "%"], ["receiving", e => part(e, [2, 3]), "%"], ["partner", e => part(e, [4]), "%"]];
const part = (e, roles) => { const sum = e.roles.reduce((a, b) => a + b, 0); return sum ? roles.reduce((a, r) => a + e.roles[r], 0) / sum : 0; };

function cell(value, kind) {
  if (typeof value === "string") return escape(value);
  if (value === null || (value < 0 && kind !== "+%")) return "-";
  if (kind === "%") return (100 * value).toFixed(1) + " %";
  if (kind === "+%") return (value > 0 ? "+" : "") + (100 * value).toFixed(1) + " %";
  if (kind === "%meter") return (100 * value).toFixed(1) + " %<span class=meter><b style='width:" + Math.min(100, 100 * value) + "%'></b></span>";
  return typeof kind === "number" ? value.toFixed(kind) : format(value);
}
function table(id, columns, rows, on, pick, footer) {
  const sort = state.sort[id] || (state.sort[id] = { column: id === "exchanges" ? 3 : id === "plan" ? 1 : 3, up: id === "exchanges" });
  const value = columns[sort.column][1], sign = sort.up ? 1 : -1;
  rows = [...rows].sort((a, b) => { const x = value(a), y = value(b); return sign * (typeof x === "string" ? x.localeCompare(y) : (x ?? -Infinity) - (y ?? -Infinity)); });
  $("panel").innerHTML += "<table><thead><tr>" + columns.map((c, i) => "<th data-column=" + i + ">" + c[0] + (i === sort.column ? (sort.up ? " \u25b4" : " \u25be") : "") + "</th>").join("") +
    "</tr></thead><tbody>" + rows.map((r, k) => "<tr data-row=" + k + (on(r) ? " class=on" : "") + ">" + columns.map(c => "<td>" + cell(c[1](r), c[2]) + "</td>").join("") + "</tr>").join("") +
    "</tbody>" + (footer ? "<tfoot><tr>" + footer + "</tr></tfoot>" : "") + "</table>";
  const box = $("panel").querySelector("table");
  box.onclick = event => {
    const head = event.target.closest("th"), line = event.target.closest("tr[data-row]");
    if (head) { const column = +head.dataset.column; state.sort[id] = { column, up: sort.column === column ? !sort.up : false }; ask(true); }
    else if (line) pick(rows[+line.dataset.row]);
  };
}
const ranged = () => state.from > 0 || state.to < D.span;
let focusIs = (field, g) => state.focus && state.focus.key === field + g.name;

function kernelTable() {
  const list = groups(s => s.kernel, { ...look(ranged()), steps: null }), work = list.reduce((a, g) => a + g.work, 0), wait = list.reduce((a, g) => a + g.wait, 0);
  table("kernels", GROUP_COLUMNS, list, g => focusIs("kernel", g), g => setFocus(focusIs("kernel", g) ? null : focusOn("kernel", g.name)),
    "<td>" + (ranged() ? "steps in the visible time" : "all") + "</td><td>" + format(list.reduce((a, g) => a + g.samples, 0)) + "</td><td></td><td></td><td></td><td>" + format(work) + "</td><td>" + percent(wait, work) + "</td><td colspan=5></td>");
}
function planTable() {
  const measured = new Map(groups(s => s.operation).map(g => [g.name, g]));
  const rows = D.operations.map(o => { const g = measured.get(D.strings[o[0]]) || {}; return { name: D.strings[o[0]], predicted: o[1], predictedExchange: o[2], cycles: o[3], exchange: o[4], work: g.work || 0, wait: g.wait || 0 }; });
  table("plan", PLAN_COLUMNS, rows, g => focusIs("operation", g), g => setFocus(focusIs("operation", g) ? null : focusOn("operation", g.name)),
    "<td>all</td><td></td><td>" + format(rows.reduce((a, r) => a + Math.max(0, r.predicted), 0)) + "</td><td></td><td></td><td>" + format(rows.reduce((a, r) => a + Math.max(0, r.predictedExchange), 0)) + "</td><td>" + format(rows.reduce((a, r) => a + r.work, 0)) + "</td><td></td>");
}
function exchangeTable() {
  if (!D.exchanges.length) { $("panel").innerHTML = "<p>No exchanges.</p>"; return; }
  const e = D.exchanges[Math.min(state.exchange, D.exchanges.length - 1)];
  $("panel").innerHTML = "<div>Exchange " + e.phase + (e.epoch ? " / " + e.epoch : "") + " of " + escape(D.strings[e.operation]) + ": tiles downwards, events 0 to " + format(e.scheduled) + " to the right; bound " + format(e.bound) + ". " +
    ROLES.map((r, i) => "<i style='display:inline-block;width:10px;height:10px;background:" + LANES[i] + "'></i> " + r).join(" ") + "</div><canvas id=lanes></canvas>";
  table("exchanges", EXCHANGE_COLUMNS, D.exchanges, x => x === e, x => { state.exchange = D.exchanges.indexOf(x); ask(true); });
  drawLanes(e);
}
function drawLanes(e) {
  const own = OWN[e.step], active = [];
  if (!own) return;
  const bins = lanesOf(e.step);
  for (let t = 0; t < D.tiles.length; t++) if (own[t]) active.push(t);
  const [c, w, h] = size($("lanes"), Math.min(150, Math.max(40, active.length * 3))), n = D.laneBins;
  const image = c.createImageData(w, h), pixels = new Uint32Array(image.data.buffer), colours = LANES.map(packed);
  pixels.fill(packed(full(css("--paper"))));
  for (let y = 0; y < h; y++) {
    const t = active[Math.min(active.length - 1, Math.floor(y * active.length / h))], ends = own[t] / e.scheduled * w;
    for (let x = 0; x < Math.min(w, ends); x++) {
      const bin = Math.floor(x * n / w), byte = bins[(t * n + bin) >> 1];
      pixels[y * w + x] = colours[bin & 1 ? byte >> 4 : byte & 15];
    }
  }
  c.putImageData(image, 0, 0);
  if (e.bound < e.scheduled) { c.fillStyle = css("--select"); c.fillRect(e.bound / e.scheduled * w, 0, 2, h); }
}

// --- flame

let flameBoxes = [];
function flameView() {
  $("panel").innerHTML = "<div id=flame-path></div><canvas id=flame></canvas>";
  const tree = flameTree(look(ranged()));
  let node = tree;
  for (const name of state.flame || []) node = node.children.get(name) || node;
  const [c, w, h, ratio] = size($("flame"), 96), level = h / 4;
  flameBoxes = [];
  c.clearRect(0, 0, w, h);
  c.font = 11 * ratio + "px system-ui, sans-serif"; c.textBaseline = "middle";
  const put = (n, x, width, depth, path) => {
    if (width < 0.5 || depth > 3) return;
    const colour = n.kernel ? (n.kind === COMPUTE ? hsl(hueOf(n.kernel), 0.55) : COLOURS[n.kind]) : n === tree ? "#8a949d" : hsl(hueOf(n.name), 0.65);
    c.fillStyle = colour; c.fillRect(x, depth * level, Math.max(0.5, width - (width > 3 ? 1 : 0)), level - 1);
    flameBoxes.push({ x, width, depth, node: n, path });
    if (width > 40 * ratio) {
      c.save(); c.beginPath(); c.rect(x, depth * level, width - 3, level); c.clip();
      c.fillStyle = "#000"; c.fillText(n.name + "  " + percent(n.work, tree.work), x + 4 * ratio, depth * level + level / 2); c.restore();
    }
    let at = x;
    for (const k of [...n.children.values()].sort((a, b) => b.work - a.work)) { const part = k.work / n.work * width; put(k, at, part, depth + 1, [...path, k.name]); at += part; }
  };
  if (node.work) put(node, 0, w, 0, state.flame || []);
  $("flame-path").innerHTML = "Work cycles, operation &rarr; kernel &rarr; phase: " + escape(["all", ...(state.flame || [])].join(" \u2192 ")) + ", " + format(node.work) + " of " + format(D.totals.work) + " (click: into it, right click: out)";
  const find = event => { const box = $("flame").getBoundingClientRect(), x = (event.clientX - box.left) * w / box.width, depth = Math.floor((event.clientY - box.top) / box.height * 4);
    return flameBoxes.find(b => b.depth === depth && x >= b.x && x < b.x + b.width); };
  $("flame").onclick = event => { const b = find(event); if (b) { state.flame = b.path; ask(true); } };
  $("flame").oncontextmenu = event => { event.preventDefault(); state.flame = (state.flame || []).slice(0, -1); ask(true); };
  $("flame").onmousemove = event => { const b = find(event); tip(event, b ? "<b>" + escape([...b.path].join(" \u2192 ") || "all") + "</b><br>" + format(b.node.work) + " cycles, " + percent(b.node.work, tree.work) : ""); };
  $("flame").onmouseleave = () => tip(null, "");
}

// --- the rest

function tip(event, html) {
  const box = $("tip");
  box.hidden = !html;
  if (!html) return;
  box.innerHTML = html;
  box.style.left = Math.min(event.clientX + 14, window.innerWidth - box.offsetWidth - 8) + "px";
  box.style.top = Math.min(event.clientY + 14, window.innerHeight - box.offsetHeight - 8) + "px";
}
const TABS = [["Flame", flameView], ["Kernels", kernelTable], ["Operations and plan", planTable], ["Exchanges", exchangeTable]];
function drawPanel() {
  $("tabs").innerHTML = TABS.map((t, i) => "<button data-tab=" + i + (i === state.tab ? " class=on" : "") + ">" + t[0] + "</button>").join("");
  $("panel").innerHTML = "";
  TABS[state.tab][1]();
}
$("tabs").addEventListener("click", event => { const b = event.target.closest("button"); if (b) { state.tab = +b.dataset.tab; ask(true); } });

let asked = false, panelToo = false;
function ask(panel) {
  panelToo = panelToo || !!panel;
  if (asked) return;
  asked = true;
  requestAnimationFrame(draw);
}
function draw() {
  const start = performance.now(), panel = panelToo;
  asked = panelToo = false;
  drawOverview(); drawTimeline();
  if (panel) { drawPanel(); drawDetails(); drawLegend(); }
  document.body.dataset.frame = (performance.now() - start).toFixed(1);
}
function drawLegend() {
  const entry = (colour, text) => "<span><i style='background:" + colour + "'></i>" + escape(text) + "</span>";
  let html = entry(COLOURS[0], "exchange") + entry(COLOURS.wait, "wait at its boundary") + entry(COLOURS[2], "synchronization") + entry(COLOURS[3], "idle");
  if (state.colour === "kind") html = entry(COLOURS[1], "compute") + html;
  else html = [...new Set(STEPS.filter(s => s.kind === COMPUTE).map(s => s[state.colour]))].slice(0, 24).map(n => entry(hsl(hueOf(n), 0.5), n)).join("") + html;
  $("legend").innerHTML = html;
}

let settle = 0;
function range(from, to, remember = true) {
  const least = Math.min(D.span, 20), width = Math.min(D.span, Math.max(least, to - from));
  from = Math.max(0, Math.min(from, D.span - width));
  if (remember) state.undo.push([state.from, state.to]);
  state.from = from; state.to = from + width;
  ask();
  clearTimeout(settle);
  settle = setTimeout(() => ask(true), 150);
}
function zoom(factor, at = (state.from + state.to) / 2, remember = true) {
  range(at - (at - state.from) * factor, at + (state.to - at) * factor, remember);
}
function back() { const last = state.undo.pop(); if (last) range(last[0], last[1], false); }
function scrollTiles(by) {
  state.top = Math.max(0, Math.min(D.tiles.length - Math.min(D.tiles.length, state.visible || 1), state.top + by));
  ask();
}

function cycleAt(canvas, event, from, to) { const box = canvas.getBoundingClientRect(); return from + Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)) * (to - from); }
for (const name of ["overview", "timeline"]) {
  const canvas = $(name), limits = () => name === "overview" ? [0, D.span] : [state.from, state.to];
  canvas.addEventListener("pointerdown", event => {
    if (event.button) return;
    canvas.setPointerCapture(event.pointerId);
    const at = cycleAt(canvas, event, ...limits());
    state.dragging = { in: name, a: at, b: at, x: event.clientX };
  });
  canvas.addEventListener("pointermove", event => {
    if (state.dragging) { state.dragging.b = cycleAt(canvas, event, ...limits()); ask(); return; }
    if (name === "overview") return;
    const i = sampleAt(event);
    tip(event, i < 0 ? "" : rowsOf(i).map(r => "<small>" + escape(r[0]) + "</small> " + escape(r[1])).join("<br>"));
  });
  canvas.addEventListener("pointerleave", () => tip(null, ""));
  canvas.addEventListener("pointerup", event => {
    const drag = state.dragging;
    state.dragging = null;
    if (!drag) return;
    if (Math.abs(event.clientX - drag.x) > 4) range(Math.min(drag.a, drag.b), Math.max(drag.a, drag.b));
    else if (name === "timeline") { state.selected = sampleAt(event); ask(); drawDetails(); }
  });
  canvas.addEventListener("contextmenu", event => { event.preventDefault(); back(); });
}
$("timeline").addEventListener("dblclick", event => { const i = sampleAt(event); if (i >= 0) range(S.start[i] - S.duration[i] * 0.1, S.start[i] + S.duration[i] * 1.1); });
$("timeline").addEventListener("wheel", event => {
  event.preventDefault();
  const amount = event.deltaY || event.deltaX;
  if (event.shiftKey || event.ctrlKey) zoom(amount > 0 ? 1.25 : 0.8, cycleAt($("timeline"), event, state.from, state.to), false);
  else scrollTiles(Math.sign(amount) * Math.max(1, Math.round(48 / rowHeight())));
}, { passive: false });
$("bar").addEventListener("pointerdown", event => {
  const move = e => { const box = $("bar").getBoundingClientRect(); state.top = 0; scrollTiles(Math.round((e.clientY - box.top) / box.height * D.tiles.length)); };
  move(event); $("bar").setPointerCapture(event.pointerId); $("bar").onpointermove = move; $("bar").onpointerup = () => { $("bar").onpointermove = null; };
});
function nextRow() { const all = [0, 1, 2, 4, 8, 16]; state.row = all[(all.indexOf(state.row) + 1) % all.length]; state.top = 0; ask(); }
function setTheme(dark) { document.documentElement.dataset.theme = dark ? "dark" : "light"; ask(true); }
$("search").addEventListener("input", event => { state.search = event.target.value; updateWanted(); ask(true); });
$("kind").addEventListener("change", event => { state.kind = event.target.value; updateWanted(); ask(true); });
$("colour").addEventListener("change", event => { state.colour = event.target.value; ask(true); });
$("smaller").onclick = () => zoom(1.6); $("larger").onclick = () => zoom(0.6); $("reset").onclick = () => range(0, D.span);
$("rows").onclick = nextRow; $("theme").onclick = () => setTheme(!isDark()); $("help").onclick = () => { $("keys").hidden = !$("keys").hidden; ask(true); };
addEventListener("resize", () => ask(true));
addEventListener("keydown", event => {
  if (event.target.tagName === "INPUT" || event.target.tagName === "SELECT") { if (event.key === "Escape") { event.target.value = ""; event.target.dispatchEvent(new Event("input")); event.target.blur(); } return; }
  const width = state.to - state.from, keys = {
    "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1.6), "0": () => range(0, D.span), r: nextRow, t: () => setTheme(!isDark()),
    "?": () => $("help").click(), "/": () => $("search").focus(), ArrowLeft: () => range(state.from - width / 8, state.to - width / 8, false),
    ArrowRight: () => range(state.from + width / 8, state.to + width / 8, false), ArrowUp: () => scrollTiles(-8), ArrowDown: () => scrollTiles(8),
    Escape: () => { if (state.focus || state.selected >= 0) { state.selected = -1; setFocus(null); } else back(); } };
  for (let tab = 0; tab < TABS.length; tab++) keys[tab + 1] = () => { state.tab = tab; ask(true); };
  if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});

$("title").textContent = D.title;
$("facts").textContent = D.tiles.length + " tiles, " + format(S.n) + " samples, " + format(D.span) + " cycles = " + time(D.span) + ", source " + (D.source || "unknown") +
  (D.cropped ? ", first " + format(D.cropped) + " cycles cut off" : "");
document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
// "#key=value&..." after the file's name sets the first view: tab, search, from, to, theme, select, exchange.
for (const [key, value] of new URLSearchParams(location.hash.slice(1))) {
  if (key === "theme") document.documentElement.dataset.theme = value;
  if (["tab", "from", "to", "row", "exchange"].includes(key)) state[key] = +value;
  if (key === "search") $("search").value = state.search = value;
  if (key === "colour") $("colour").value = state.colour = value;
  if (key === "select") state.selected = +value;
  if (key === "operation" || key === "kernel") state.focus = focusOn(key, value);
}
updateWanted();
draw();
document.body.dataset.painted = performance.now().toFixed(0);
// The pictures first; then the tables, and the sums of everything.
let finished = false;
function finish() {
  if (finished) return;
  finished = true;
  draw(panelToo = true);
  const checked = checkSums();
  document.body.dataset.sums = JSON.stringify(checked.sums);
  document.body.dataset.ok = checked.ok;
  document.body.dataset.ready = performance.now().toFixed(0);
  if (!checked.ok) { $("alarm").hidden = false; $("alarm").textContent = "The sums of this report do not add up"; }
  setTimeout(warm, 100);
}
// The cells of the next steps of zooming, a few rows at a time while nothing happens.
function warm() {
  const begin = performance.now(), whole = 2 ** Math.max(10, Math.ceil(Math.log2($("timeline").width)));
  if (S.n < FEW_SAMPLES) return;
  for (let n = whole; n <= 4 * whole && n * D.tiles.length <= CELLS_LIMIT; n *= 2)
    for (let t = 0, level = levelOf(n); t < D.tiles.length; t++) {
      if (!level.made[t]) fillRow(level, t);
      if (performance.now() - begin > 8) { setTimeout(warm, 20); return; }
    }
}
setTimeout(finish, 0);
