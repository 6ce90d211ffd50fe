// report_driver.js - put behind a report's own script by report_chromium.sh: uses the page as a
// person would and writes what it found into the body's data-driven attribute.
"use strict";
(async () => {
  const failures = [], frames = [];
  window.addEventListener("error", e => failures.push(e.message));
  // no timers: all of this runs before the page counts as loaded, on the real clock
  const frame = async () => { const s = performance.now(); draw(); frames.push(performance.now() - s); };
  const expect = (name, truth) => { if (!truth) failures.push(name); };
  const key = k => dispatchEvent(new KeyboardEvent("keydown", { key: k, bubbles: true }));
  const mouse = (type, element, x, y, more) => { const box = element.getBoundingClientRect();
    element.dispatchEvent(new PointerEvent(type, { clientX: box.left + x * box.width, clientY: box.top + y * box.height, bubbles: true, cancelable: true, pointerId: 1, ...more })); };
  const timeline = $("timeline"), capture = Element.prototype.setPointerCapture;
  Element.prototype.setPointerCapture = () => {};
  window.dispatchEvent = window.dispatchEvent.bind(window);

  finish();
  const fromFile = JSON.parse(document.body.dataset.sums);
  expect("sums", document.body.dataset.ok === "true");

  for (let i = 0; i < 12; i++) { key("+"); await frame(); }
  const zooming = frames.splice(0);
  expect("zoom by key", state.to - state.from < D.span / 50);
  for (let i = 0; i < 6; i++) { key("ArrowRight"); await frame(); }
  for (let i = 0; i < 12; i++) { key("-"); await frame(); }
  zooming.push(...frames.splice(0));
  key("0"); await frame();
  expect("whole run by key", state.from === 0 && state.to === D.span);

  mouse("pointerdown", timeline, 0.25, 0.5); mouse("pointermove", timeline, 0.5, 0.5); mouse("pointerup", timeline, 0.5, 0.5);
  await frame();
  expect("zoom by dragging", Math.abs(state.from / D.span - 0.25) < 0.01 && Math.abs(state.to / D.span - 0.5) < 0.01);
  timeline.dispatchEvent(new MouseEvent("contextmenu", { bubbles: true, cancelable: true })); await frame();
  expect("back by right click", state.from === 0 && state.to === D.span);
  const box = timeline.getBoundingClientRect();
  for (let i = 0; i < 8; i++) {
    timeline.dispatchEvent(new WheelEvent("wheel", { deltaY: -100, shiftKey: true, clientX: box.left + box.width / 3, clientY: box.top + 60, bubbles: true, cancelable: true }));
    await frame();
  }
  expect("zoom by wheel", state.to - state.from < D.span / 4);
  timeline.dispatchEvent(new WheelEvent("wheel", { deltaY: 100, clientX: box.left + 5, clientY: box.top + 60, bubbles: true, cancelable: true })); await frame();
  key("0"); await frame(); state.top = 0;

  for (const x of [0.1, 0.3, 0.5, 0.7, 0.9]) {
    if (state.selected >= 0) break;
    mouse("pointerdown", timeline, x, 0.1); mouse("pointerup", timeline, x, 0.1); await frame();
  }
  expect("selection", state.selected >= 0);
  expect("details", $("details").textContent.includes(STEPS[S.step[state.selected]].kernel));
  mouse("pointermove", timeline, 0.3, 0.1);

  const all = JSON.stringify(groups(s => s.kernel).map(g => g.work));
  $("search").value = STEPS.find(s => s.kind === 1).operation; $("search").dispatchEvent(new Event("input")); await frame();
  expect("search", wantedSteps && wantedSteps.some(x => x) && wantedSteps.some(x => !x));
  $("search").value = ""; $("search").dispatchEvent(new Event("input"));
  for (const kind of ["0", "1", "2", "3", ""]) { $("kind").value = kind; $("kind").dispatchEvent(new Event("change")); await frame(); }
  for (const colour of ["kernel", "operation", "kind"]) { $("colour").value = colour; $("colour").dispatchEvent(new Event("change")); await frame(); }
  expect("groups unchanged", all === JSON.stringify(groups(s => s.kernel).map(g => g.work)));

  // a cell of the levels of detail shows what takes most of its stretch
  const level = levelOf(512), width = D.span / level.n;
  for (let trial = 0, seed = 7; trial < 300; trial++) {
    seed = (seed * 1103515245 + 12345) >>> 0;
    const t = seed % D.tiles.length, k = (seed >>> 8) % level.n;
    if (!level.made[t]) fillRow(level, t);
    const share = (a, b) => Math.max(0, Math.min(b, (k + 1) * width) - Math.max(a, k * width));
    let most = 0, shown = 0, cell = level.cells[t * level.n + k];
    for (let i = S.first[t]; i < S.first[t + 1]; i++) {
      const start = S.start[i], until = start + (STEPS[S.step[i]].kind === 0 ? S.wait[i] : 0), parts = [[start, until, 2 * S.step[i] + 2], [until, start + S.duration[i], 2 * S.step[i] + 1]];
      for (const [a, b, value] of parts) { most = Math.max(most, share(a, b)); if (value === cell) shown = Math.max(shown, share(a, b)); }
    }
    expect("cell " + k + " of tile " + t, Math.abs(most - shown) < 1e-6 * width);
  }

  for (let tab = 1; tab <= 4; tab++) {
    key(String(tab)); panelToo = true; await frame();
    expect("tab " + tab, state.tab === tab - 1 && $("panel").textContent.length > 20);
    const head = $("panel").querySelector("th:nth-child(2)"), row = $("panel").querySelector("tr[data-row]");
    if (head) { head.click(); panelToo = true; await frame(); }
    if (row && $("panel").querySelector("tr[data-row]")) { $("panel").querySelector("tr[data-row]").click(); panelToo = true; await frame(); }
  }
  const flame = (state.tab = 0, panelToo = true, await frame(), $("flame"));
  mouse("click", flame, 0.1, 0.4); panelToo = true; await frame();
  expect("flame", state.flame && state.flame.length === 1);
  key("Escape"); key("t"); panelToo = true; await frame(); key("t"); key("r"); await frame();
  Element.prototype.setPointerCapture = capture;
  frames.sort((a, b) => a - b);
  zooming.sort((a, b) => a - b);
  const zoom = zooming[zooming.length >> 1], painted = +document.body.dataset.painted;
  expect("zoom and pan at 30 frames per second: " + zoom, zoom < 1000 / 30);
  if (QUIET) expect("first paint within 2 s: " + painted, painted < 2000);
  document.body.dataset.driven = JSON.stringify({ failures, frames: frames.length, median: +frames[frames.length >> 1].toFixed(1),
    worst: +frames[frames.length - 1].toFixed(1), zoomMedian: +zoom.toFixed(1), zoomWorst: +zooming[zooming.length - 1].toFixed(1), quiet: QUIET, painted, ready: +document.body.dataset.ready, samples: fromFile.samples });
})().catch(error => { document.body.dataset.driven = JSON.stringify({ failures: [String(error), error.stack] }); });
