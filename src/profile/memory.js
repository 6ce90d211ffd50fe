// memory.js - a tile's memory: steps to the right, addresses downwards; what lives is coloured.

const D = JSON.parse(document.getElementById("data").textContent), $ = id => document.getElementById(id);
const COLOURS = ["#cf3f4a", "#287db2", "#6b5596", "#9a547f", "#c58b24", "#17854c", "#8a949d"];
const escape = text => String(text).replace(/[&<>"]/g, c => "&#" + c.charCodeAt(0) + ";");
const format = n => Math.round(n).toLocaleString("en-US").replace(/,/g, "\u202f"), hex = n => "0x" + n.toString(16);
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const steps = D.steps.length, sizes = D.tiles.map(t => peak(t.items));
const state = { tile: sizes.indexOf(Math.max(...sizes)), low: D.memoryBase, high: D.memoryEnd, step: -1, search: "" };

// Most bytes alive in one step.
function liveBytes(items) {
  const change = new Float64Array(steps + 1);
  for (const [, , , bytes, first, last] of items) { change[first] += bytes; change[last + 1] -= bytes; }
  for (let s = 1; s <= steps; s++) change[s] += change[s - 1];
  return change;
}
function peak(items) { return Math.max(...liveBytes(items)); }

function size(canvas) {
  const ratio = devicePixelRatio || 1, w = Math.round(canvas.clientWidth * ratio), h = Math.round(canvas.clientHeight * ratio);
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
  return [canvas.getContext("2d"), w, h, ratio];
}
function drawTiles() {
  const [c, w, h] = size($("tiles")), most = D.memoryEnd - D.memoryBase, n = sizes.length;
  c.clearRect(0, 0, w, h);
  sizes.forEach((bytes, t) => { c.fillStyle = t === state.tile ? css("--select") : "#8ebeb4";
    const height = bytes / most * h; c.fillRect(t * w / n, h - height, Math.max(1, w / n - (w / n > 4 ? 1 : 0)), height); });
}
function drawMap() {
  const [c, w, h, ratio] = size($("map")), scale = h / (state.high - state.low);
  c.clearRect(0, 0, w, h);
  for (const [name, kind, address, bytes, first, last] of D.tiles[state.tile].items) {
    const y = (address - state.low) * scale, height = Math.max(1, bytes * scale), x = first / steps * w, width = (last + 1 - first) / steps * w;
    if (y > h || y + height < 0) continue;
    c.globalAlpha = state.search && !D.names[name].includes(state.search) ? 0.15 : 1;
    c.fillStyle = COLOURS[kind]; c.fillRect(x, y, width, height - (height > 3 ? 1 : 0));
    if (height > 13 * ratio && width > 60) { c.fillStyle = "#fff"; c.font = 11 * ratio + "px system-ui, sans-serif"; c.save(); c.beginPath(); c.rect(x, y, width, height); c.clip(); c.fillText(D.names[name], x + 4, y + 11 * ratio); c.restore(); }
  }
  c.globalAlpha = 1; c.fillStyle = css("--ink"); c.font = 11 * ratio + "px system-ui, sans-serif";
  const line = (D.interleavedBase - state.low) * scale;
  if (line > 0 && line < h) { c.fillRect(0, line, w, 1); c.fillText("interleaved from " + hex(D.interleavedBase), 6, line - 4); }
  if (state.step >= 0) { c.fillStyle = css("--select"); c.fillRect((state.step + 0.5) / steps * w, 0, 2, h); }
}
function holes(items) {
  let at = D.memoryBase; const out = [];
  for (const i of [...items].sort((a, b) => a[2] - b[2])) { if (i[2] > at) out.push([at, i[2] - at]); at = Math.max(at, i[2] + i[3]); }
  if (at < D.memoryEnd) out.push([at, D.memoryEnd - at]);
  return out.sort((a, b) => b[1] - a[1]);
}
function drawDetails() {
  const t = D.tiles[state.tile], live = liveBytes(t.items), step = state.step >= 0 ? state.step : live.indexOf(Math.max(...live));
  const alive = t.items.filter(i => i[4] <= step && step <= i[5]), row = r => "<tr><td>" + escape(r[0]) + "</td><td>" + escape(r[1]) + "</td></tr>";
  const classes = D.classes.map((n, k) => [n, alive.filter(i => i[1] === k).reduce((a, i) => a + i[3], 0)]).filter(r => r[1]);
  $("details").innerHTML = "<h2>tile " + t.tile + " (physical " + t.physicalTile + ")</h2><table>" + [["standard", format(t.peakStandard) + " bytes at most"], ["interleaved", format(t.peakInterleaved) + " bytes at most"],
    ["step", step + (state.step < 0 ? " (the fullest)" : "")], ["does", D.steps[step][0] + " of " + D.names[D.steps[step][1]]], ["alive", format(live[step]) + " bytes"]].map(row).join("") +
    classes.map(r => row(["  " + r[0], format(r[1])])).join("") + "</table><h2>largest holes</h2><table>" + holes(alive).slice(0, 6).map(x => row([hex(x[0]), format(x[1])])).join("") +
    "</table><h2>alive, largest first</h2><table>" + alive.sort((a, b) => b[3] - a[3]).slice(0, 60).map(i => row([format(i[3]), D.names[i[0]] + " at " + hex(i[2])])).join("") + "</table>";
}
function draw() { $("tile").value = D.tiles[state.tile].tile; drawTiles(); drawMap(); drawDetails(); }
function at(event) {
  const box = $("map").getBoundingClientRect(), step = Math.floor((event.clientX - box.left) / box.width * steps), address = state.low + (event.clientY - box.top) / box.height * (state.high - state.low);
  return [step, address, D.tiles[state.tile].items.find(i => i[4] <= step && step <= i[5] && i[2] <= address && address < i[2] + i[3])];
}
$("map").onmousemove = event => { const [step, address, i] = at(event), tip = $("tip"); tip.hidden = false;
  tip.innerHTML = "<small>step " + step + ", " + hex(Math.floor(address)) + "</small><br>" + (i ? "<b>" + escape(D.names[i[0]]) + "</b><br>" + D.classes[i[1]] + ", " + format(i[3]) + " bytes at " + hex(i[2]) + "<br>steps " + i[4] + " to " + i[5] : "free");
  tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8) + "px"; tip.style.top = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8) + "px"; };
$("map").onmouseleave = () => { $("tip").hidden = true; };
$("map").onclick = event => { state.step = at(event)[0]; draw(); };
$("map").addEventListener("wheel", event => { event.preventDefault(); const centre = at(event)[1], factor = event.deltaY > 0 ? 1.25 : 0.8;
  state.low = Math.max(D.memoryBase, centre - (centre - state.low) * factor); state.high = Math.min(D.memoryEnd, centre + (state.high - centre) * factor); draw(); }, { passive: false });
$("tiles").onclick = event => { const box = $("tiles").getBoundingClientRect(); state.tile = Math.min(sizes.length - 1, Math.floor((event.clientX - box.left) / box.width * sizes.length)); draw(); };
$("tile").onchange = () => { const k = D.tiles.findIndex(t => t.tile === +$("tile").value); if (k >= 0) state.tile = k; draw(); };
$("largest").onclick = () => { state.tile = sizes.indexOf(Math.max(...sizes)); draw(); };
$("reset").onclick = () => { state.low = D.memoryBase; state.high = D.memoryEnd; state.step = -1; draw(); };
$("search").oninput = () => { state.search = $("search").value; draw(); };
$("theme").onclick = () => { document.documentElement.dataset.theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark"; draw(); };
addEventListener("keydown", event => { if (event.target.tagName !== "INPUT" && event.key === "0") $("reset").click(); });
addEventListener("resize", draw);
document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
$("legend").innerHTML = D.classes.map((n, i) => "<span><i style='background:" + COLOURS[i] + "'></i>" + n + "</span>").join("");
$("facts").textContent = D.tiles.length + " tiles, " + steps + " steps, fullest tile " + format(Math.max(...sizes)) + " bytes of " + format(D.memoryEnd - D.memoryBase);
draw();
document.body.dataset.ready = 1;
