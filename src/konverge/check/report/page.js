"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const STEP = 16, LANE = 34, LEFT = 108, TOP = 40;

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  return filled(element, attributes, children);
}

function draw(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  return filled(element, attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  for (const child of children) element.append(child);
  return element;
}

// ------------------------------------------------------------------ the list

function list() {
  const entries = data.findings.map((finding, index) => entry(
    [make("span", { class: `severity ${finding.severity}` }, finding.severity), make("br"), finding.sentence],
    () => show(finding), index === 0));
  entries.push(entry(["What was tested"], showCoverage, data.findings.length === 0));
  document.getElementById("list").append(...entries);
  document.getElementById("headline").textContent = `${data.headline} · konverge ${data.version}`;
  entries[0].querySelector("button").click();
}

function entry(children, open) {
  const button = make("button", { type: "button" }, ...children);
  button.addEventListener("click", () => {
    for (const other of document.querySelectorAll("nav button")) other.removeAttribute("aria-current");
    button.setAttribute("aria-current", "true");
    const section = document.getElementById("shown");
    section.replaceChildren();
    open();
  });
  return make("li", {}, button);
}

// ------------------------------------------------------------------ one finding

function show(finding) {
  const section = document.getElementById("shown");
  const [times, repeats] = finding.confirmed;
  const seen = [`${finding.oracle}`, `${finding.runs} run${finding.runs > 1 ? "s" : ""}`, finding.patterns.join(", ")];
  if (repeats) seen.push(times < repeats ? `flaky: shown again ${times} of ${repeats} times` : "shown again");
  section.append(
    make("h2", {}, finding.sentence),
    make("p", { class: "quiet" }, make("span", { class: `severity ${finding.severity}` }, finding.severity), ` · ${seen.join(" · ")}`),
    make("p", { class: "command" }, make("code", {}, finding.replay)));
  if (finding.expected || finding.actual) section.append(values(finding));
  section.append(make("h3", {}, "What happened, and what happens without the fault"));
  const detail = make("div", { id: "detail" }, make("p", { class: "quiet" }, "▲ created  ● changed  ■ deleted. Choose a mark to see the change and what the operator had seen."));
  section.append(timeline(finding, detail), detail);
  const columns = make("div", { class: "columns" });
  columns.append(resource(finding), log(finding));
  section.append(columns);
  if (finding.details.length) section.append(others(finding));
}

function values(finding) {
  return make("table", { class: "narrow" },
    make("tr", {}, make("th", {}, `${finding.object} ${finding.field}`), make("th", {}, "without the fault"), make("td", { class: "value" }, finding.expected)),
    make("tr", {}, make("td", {}), make("th", {}, "with it"), make("td", { class: "value" }, finding.actual)));
}

function resource(finding) {
  const block = make("div", {}, make("h3", {}, "What the user did"));
  for (const step of finding.resource) {
    block.append(make("p", {}, make("strong", {}, step.step)));
    for (const object of step.objects) {
      block.append(make("p", { class: "quiet" }, object.name));
      if (object.text) block.append(make("pre", {}, object.text));
      if (object.diff) block.append(differences(object.diff));
    }
  }
  return block;
}

function differences(rows) {
  const table = make("table", {});
  for (const [path, before, after] of rows) {
    table.append(make("tr", {}, make("td", {}, make("code", {}, path)),
      make("td", { class: "value old" }, before), make("td", { class: "value new" }, after)));
  }
  return table;
}

function log(finding) {
  const text = finding.log.length ? finding.log.join("\n") : "The operator logged nothing that was kept.";
  const shown = make("pre", { tabindex: "0" }, text);
  return make("div", {}, make("h3", {}, "The operator's log, with its incarnation"), shown);
}

function others(finding) {
  const table = make("table", {}, make("tr", {}, make("th", {}, "what else the same cause led to"), make("th", {}, "without the fault"), make("th", {}, "with it")));
  for (const detail of finding.details) {
    table.append(make("tr", {}, make("td", {}, make("span", { class: `severity ${detail.severity}` }, detail.severity), ` ${detail.text}`),
      make("td", { class: "value" }, detail.expected), make("td", { class: "value" }, detail.actual)));
  }
  return make("div", {}, make("h3", {}, `Details (${finding.details.length})`), table);
}

// ------------------------------------------------------------------ lanes

function timeline(finding, detail) {
  const reference = data.references[finding.reference];
  const part = finding.divergence;
  const shift = part ? part.run - part.reference : 0;
  const first = Math.max(0, -shift), second = Math.max(0, shift);
  const columns = Math.max(finding.lanes.events.length + first, reference.events.length + second) + 2;
  const upper = TOP + finding.lanes.lanes.length * LANE, between = 26;
  const height = upper + between + TOP + reference.lanes.length * LANE + 8;
  const width = LEFT + columns * STEP;
  const svg = draw("svg", { width, height, role: "img", "aria-label": "Changes over revisions, in lanes" });
  lanes(svg, finding.lanes, first, 0, "with the fault", detail, part && part.extra ? part.run : -1);
  lanes(svg, reference, second, upper + between, "without", detail, part && !part.extra ? part.reference : -1);
  if (part) {
    const x = LEFT + (part.run + first) * STEP;
    svg.append(draw("line", { class: "parting", x1: x, x2: x, y1: 14, y2: height }),
      draw("text", { class: "partingtext", x: x + 4, y: upper + 16 }, part.extra ? "only with the fault" : "only without the fault"));
  }
  const scroll = make("div", { class: "scroll", tabindex: "0" }, svg);
  requestAnimationFrame(() => {
    const middle = part ? LEFT + (part.run + first) * STEP : 0;
    scroll.scrollLeft = Math.max(0, middle - scroll.clientWidth / 2);
  });
  return scroll;
}

function lanes(svg, run, offset, top, title, detail, parting) {
  const positions = new Map(run.lanes.map((lane, index) => [lane, top + TOP + index * LANE + LANE / 2]));
  const bottom = top + TOP + run.lanes.length * LANE;
  bands(svg, run, offset, top, bottom);
  for (const [lane, y] of positions) {
    svg.append(draw("line", { class: "lane", x1: LEFT, x2: svg.getAttribute("width"), y1: y, y2: y }),
      draw("text", { x: 6, y: y + 4 }, lane));
  }
  svg.append(draw("text", { class: "title", x: 6, y: top + 30 }, title));
  run.events.forEach((event, index) => {
    const x = LEFT + (index + offset) * STEP, y = positions.get(event.lane);
    svg.append(mark(event, x, y, detail, index === parting));
    if (event.mark) {
      svg.append(draw("line", { class: "fault", x1: x + STEP / 2, x2: x + STEP / 2, y1: top + 30, y2: bottom }),
        draw("text", { class: "faulttext", x: x + STEP / 2 + 5, y: y - 9 }, `✗ ${event.mark}`));
    }
  });
}

function bands(svg, run, offset, top, bottom) {
  let begin = 0;
  run.events.forEach((event, index) => {
    const last = index + 1 === run.events.length || run.events[index + 1].step !== event.step;
    if (!last) return;
    const x = LEFT + (begin + offset) * STEP - STEP / 2, width = (index + 1 - begin) * STEP;
    if (event.step % 2 === 0) svg.append(draw("rect", { class: "band", x, y: top + 18, width, height: bottom - top - 18 }));
    svg.append(draw("text", { class: "label", x: x + 4, y: top + 30 }, run.steps[event.step] || ""));
    begin = index + 1;
  });
}

const SHAPES = { "+": "M0,-7 L7,6 L-7,6 Z", "-": "M-6,-6 L6,-6 L6,6 L-6,6 Z" };

function mark(event, x, y, detail, differs) {
  const writer = event.lane.startsWith("operator") ? "operator" : event.lane === "user" ? "user" : "cluster";
  const shape = SHAPES[event.sign] ? draw("path", { d: SHAPES[event.sign] }) : draw("circle", { r: 5 });
  const group = draw("g", {
    class: `event ${writer}${differs ? " differs" : ""}`, transform: `translate(${x},${y})`, tabindex: "0", role: "button",
  }, draw("title", {}, `${event.sign} ${event.name} ${event.fields}`), shape);
  const choose = () => {
    for (const other of document.querySelectorAll("svg .chosen")) other.classList.remove("chosen");
    group.classList.add("chosen");
    detail.replaceChildren(...described(event));
  };
  group.addEventListener("click", choose);
  group.addEventListener("keydown", (pressed) => { if (pressed.key === "Enter" || pressed.key === " ") { pressed.preventDefault(); choose(); } });
  return group;
}

function described(event) {
  const verbs = { "+": "created", "-": "deleted", "~": "changed" };
  const parts = [make("h3", {}, `${event.name} ${verbs[event.sign]} by ${event.lane}`),
    make("p", { class: "quiet" }, `revision ${event.revision}, ${event.time} s${event.guarded ? ", guarded by a precondition" : ""}`)];
  if (event.mark) parts.push(make("p", { class: "high" }, `✗ ${event.mark}`));
  if (event.diff.length) parts.push(differences(event.diff));
  if (event.lane.startsWith("operator")) {
    const seen = event.seen.length ? event.seen.join("; ") : "nothing older than the store";
    parts.push(make("p", {}, `What the operator had seen by then: ${seen}.`));
  }
  return parts;
}

// ------------------------------------------------------------------ coverage

function showCoverage() {
  const section = document.getElementById("shown");
  section.append(make("h2", {}, "What was tested, and what was not"));
  section.append(make("ul", {}, ...data.tested.map((line) => make("li", {}, line))));
  for (const table of data.coverage) {
    const body = make("table", {}, make("tr", {}, make("th", {}, ""), ...table.columns.map((name) => make("th", {}, name))));
    for (const row of table.rows) {
      body.append(make("tr", {}, make("td", {}, row.name), ...table.columns.map((name) =>
        make("td", { class: `cell-${row.cells[name].split(" ")[0]}` }, row.cells[name]))));
    }
    section.append(make("h3", {}, table.title), body);
  }
  if (data.varying.length) {
    section.append(make("h3", {}, "Not compared, since it varies by itself"), make("pre", {}, data.varying.join("\n")));
  }
}

list();
