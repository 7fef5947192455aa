"use strict";
// The report page over one JSON document. Whatever comes from the data is put in place as text:
// no markup is ever made of a string.
(() => {
  const byId = (id) => document.getElementById(id);
  const live = document.documentElement.dataset.mode === "live";
  const main = byId("main"), nav = byId("nav"), dialog = byId("detail"), filter = byId("filter");
  let doc = JSON.parse(byId("document").textContent);
  let filtered = [];  // what the filter narrows on the page that is shown
  const kept = new Map();  // what was chosen on a page: which kinds, all or some

  // Making elements

  const SVG = "http://www.w3.org/2000/svg";
  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (name === "style") for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
      else element.setAttribute(name, value === true ? "" : value);
    }
    for (const child of children.flat(9)) {
      if (child === null || child === undefined || child === false) continue;
      element.append(child instanceof Node ? child : document.createTextNode(String(child)));
    }
    return element;
  }
  const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

  // Words and numbers

  const whole = new Intl.NumberFormat("en");
  const number = (value) => whole.format(value);
  const plural = (count, nouns) => `${number(count)} ${count === 1 ? nouns[0] : nouns[1]}`;
  const ROWS = ["row", "rows"], COLUMNS = ["column", "columns"];
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;  // for a shell
  const listed = (names) => names.join(", ");
  const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
  // A value of the data: as it is, but for separators in what is too long for a year.
  const long = new Intl.NumberFormat("en", {useGrouping: "min2", maximumFractionDigits: 20});
  const grouped = (value) => value !== 0 && (Math.abs(value) >= 1e15 || Math.abs(value) < 1e-6) ? String(value) : long.format(value);
  const share = (value) => value >= 0.001 ? `${+(value * 100).toPrecision(3)}%` : value.toPrecision(2);
  const seconds = (value) => value < 0.995 ? `${Math.round(value * 1000)} ms` : value < 99.5 ? `${value.toFixed(1)} s` : `${Math.round(value)} s`;
  const moment = (created) => created.slice(0, 16).replace("T", " ");
  const total = (version) => Object.values(version.seconds).reduce((sum, each) => sum + each, 0);
  const cell = (value) => value === null ? h("span", {class: "null"}, "null")
    : typeof value === "string" ? (value === "" || value !== value.trim() ? `'${value}'` : value) : JSON.stringify(value);
  const chips = (columns, kind = "") => columns.length
    ? columns.map((each) => h("span", {class: `chip ${kind}`, title: each}, each)) : h("span", {class: `chip ${kind}`}, "{ }");

  const tableOf = (name) => doc.tables.find((each) => each.name === name);
  const address = (name) => `#/table/${encodeURIComponent(name)}`;
  const listOf = (table, test) => table.lists.filter((each) => each.entries.length && test(each.entries[0]));
  const isDependency = (entry) => "lhs" in entry && "rhs" in entry;
  const isRule = (entry) => "form" in entry;
  const keysOf = (table) => (table.lists.find((each) => each.field === "keys") || {entries: []}).entries.filter((key) => !key.error);
  const references = () => doc.lists.find((each) => each.entries.length && "score" in each.entries[0]);
  const likelyReferences = () => { const found = references(); return found ? found.entries.filter((each) => each.score >= found.worthwhile) : []; };
  const columnsOf = (entry) => entry.columns || (entry.lhs && [...entry.lhs, entry.rhs]) || (entry.column && [entry.column])
    || (entry.predicates && entry.predicates.flatMap((each) => [each.left[1], each.right[1]])) || (entry.dependent && entry.dependent.columns) || [];

  function words(entry) {
    if (entry.low === undefined) {
      Object.defineProperty(entry, "low", {value: `${entry.text || ""} ${entry.sentence || ""} ${entry.search || ""}`.toLowerCase(), enumerable: false});
    }
    return entry.low;
  }
  const asked = () => filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const matching = (entries) => {
    const wanted = asked();
    return wanted.length ? entries.filter((each) => wanted.every((word) => words(each).includes(word))) : entries;
  };

  // What is too wide fades at the side where there is more, and the keyboard scrolls it, too.
  function scrolls(element) {
    const mark = () => {
      const more = element.scrollWidth - element.clientWidth;
      element.classList.toggle("more-right", element.scrollLeft < more - 1);
      element.classList.toggle("more-left", more > 1 && element.scrollLeft > 1);
      if (more > 1) element.tabIndex = 0;
    };
    element.addEventListener("scroll", mark, {passive: true});
    const sizes = new ResizeObserver(mark);
    sizes.observe(element);
    for (const child of element.children) sizes.observe(child);
    return element;
  }

  // A list of any length, of which only the visible rows exist. Rows wrap: each counts as `height` until it is drawn, and then as high as it is.

  let listCount = 0;
  function list({label, items, height = 36, most = 11, draw, open, extra = "", scroller = null, fit = null}) {
    const id = `list-${++listCount}`;
    const space = h("div", {class: "space"});
    const element = h("div", {class: `list ${extra}`, tabindex: "0", role: "listbox", "aria-label": label, id}, space);
    const view = scroller || element;
    let shown = items, active = 0, drawn = new Map(), waiting = false, width = 0;
    let heights = new Float64Array(0), tops = new Float64Array(1);  // the top of each row, and the end of the last
    const top = () => scroller ? Math.max(0, scroller.scrollTop) : element.scrollTop;
    const room = () => view.clientHeight || most * height;
    const place = (made, at) => made.style.setProperty("transform", `translateY(${tops[at]}px)`);
    function row(at) {
      const made = h("div", {class: "row", role: "option", id: `${id}-${at}`, "aria-setsize": shown.length, "aria-posinset": at + 1,
        style: {"min-height": `${height}px`}, onclick: () => { active = at; mark(); if (open) open(shown[at]); }});
      draw(made, shown[at], at);
      place(made, at);
      return made;
    }
    function rowAt(y) {
      let low = 0, high = shown.length;
      while (low < high) { const middle = (low + high) >> 1; if (tops[middle + 1] <= y) low = middle + 1; else high = middle; }
      return low;
    }
    function layout() {
      tops = new Float64Array(shown.length + 1);
      for (let at = 0; at < shown.length; at++) tops[at + 1] = tops[at] + heights[at];
      for (const [at, made] of drawn) place(made, at);
      space.style.height = `${tops[shown.length]}px`;
      if (fit) fit(tops[shown.length]);
      else element.style.height = `${shown.length > most ? tops[most] + height / 2 : tops[shown.length]}px`;  // half a row says that there are more
    }
    function paint() {
      waiting = false;
      for (let round = 0; round < 3; round++) {  // what is higher than it counted moves others out of sight
        const first = Math.max(0, rowAt(top()) - 4), last = Math.min(shown.length, rowAt(top() + room()) + 5);
        for (const [at, made] of drawn) if (at < first || at >= last) { made.remove(); drawn.delete(at); }
        for (let at = first; at < last; at++) if (!drawn.has(at)) { const made = row(at); drawn.set(at, made); space.append(made); }
        let changed = false;
        for (const [at, made] of drawn) {
          const high = made.offsetHeight;
          if (high && high !== heights[at]) { heights[at] = high; changed = true; }
        }
        if (!changed) break;
        layout();
      }
      mark();
    }
    function mark() {
      for (const [at, made] of drawn) { made.classList.toggle("active", at === active); made.setAttribute("aria-selected", at === active); }
      if (drawn.has(active)) element.setAttribute("aria-activedescendant", `${id}-${active}`);
      else element.removeAttribute("aria-activedescendant");
    }
    function go(to) {
      active = Math.min(Math.max(0, to), shown.length - 1);
      for (let round = 0; round < 2; round++) {
        const space = room() - (scroller ? 160 : 0);
        if (tops[active] < top()) view.scrollTop = tops[active];
        else if (tops[active + 1] > top() + space) view.scrollTop = tops[active + 1] - space;
        paint();
      }
    }
    function set(next) {
      shown = next; active = 0;
      for (const made of drawn.values()) made.remove();
      drawn = new Map();
      view.scrollTop = 0;
      heights = new Float64Array(shown.length).fill(height);
      layout();
      paint();
    }
    view.addEventListener("scroll", () => { if (!waiting) { waiting = true; requestAnimationFrame(paint); } }, {passive: true});
    element.addEventListener("keydown", (event) => {
      const page = Math.max(1, Math.floor(room() / height) - 1);
      const moves = {ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: shown.length - 1};
      if (event.key in moves && shown.length) { event.preventDefault(); go(moves[event.key]); }
      else if ((event.key === "Enter" || event.key === " ") && open && shown.length) { event.preventDefault(); open(shown[active]); }
    });
    set(items);
    new ResizeObserver(() => {
      if (element.clientWidth === width) return;
      width = element.clientWidth;
      heights.fill(height);
      layout();
      paint();
    }).observe(element);
    return {element, set};
  }

  // A section with a heading, a count, and what the filter leaves

  function section(title, about, ...content) {
    const count = h("span", {class: "count"});
    const tools = h("div", {class: "tools"});
    const element = h("section", {"aria-label": title}, h("div", {class: "head"}, h("h2", {}, title), count, tools),
      about && h("p", {class: "about"}, about), content);
    return {element, count, tools};
  }
  function filteredList(made, options, entries, all, nouns) {
    const empty = h("div", {class: "panel empty", hidden: true});
    const panel = h("div", {class: "panel"});
    const rows = list({...options, items: entries()});
    panel.append(rows.element);
    const update = () => {
      const some = entries(), left = matching(some);
      rows.set(left);
      panel.hidden = !left.length;
      empty.hidden = !!left.length;
      empty.textContent = some.length ? `None of them matches “${filter.value}”.` : `No ${nouns[0]}.`;
      const of = all();
      made.count.textContent = left.length < some.length ? `${number(left.length)} of ${number(of)}`
        : some.length < of && !made.partial ? `the first ${number(some.length)} of ${number(of)}` : number(of);
    };
    made.element.append(panel, empty);
    filtered.push(update);
    update();
    return update;
  }

  // When a constraint held

  const firstVersion = (table, field) => {
    for (const each of doc.versions) if (each.numbers[table] && field in each.numbers[table]) return each.version;
    return doc.versions.length ? doc.versions[0].version : doc.version;
  };
  function lifeOf(table, field, text) {
    const key = `${table}\n${field}`;
    if (!lifeOf.known) lifeOf.known = new Map();
    if (!lifeOf.known.has(key)) {
      lifeOf.known.set(key, new Map((doc.lives[table] || []).filter((each) => each.field === field).map((each) => [each.text, each])));
    }
    return lifeOf.known.get(key).get(text) || {field, text, spans: [[firstVersion(table, field), null, null]], calm: true};
  }
  function held(life) {
    const [start] = life.spans[life.spans.length - 1];
    const broke = life.spans.filter((each) => each[2] === "broken").length;
    const survived = doc.versions.filter((each) => each.version > start).length;
    const since = `since version ${start}`;
    return `${since}${survived ? `, through ${plural(survived, ["later version", "later versions"])}` : ""}${broke ? `; broke ${broke === 1 ? "once" : `${broke} times`}` : ""}`;
  }

  // Details of one thing, over the page

  let before = null;
  function show(title, ...content) {
    before = document.activeElement;
    dialog.replaceChildren(
      h("header", {}, h("h2", {id: "detail-title"}, title), h("button", {type: "button", class: "quiet", onclick: () => dialog.close()}, "Close")),
      h("div", {class: "body"}, content));
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  }
  dialog.addEventListener("close", () => { if (before && before.isConnected) before.focus(); });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });

  // The columns that decide come first, in their own order, then those in which the rows differ, and the others as the table has them.
  function rowsTable(rows, marked, table, tone = "", fresh = []) {
    const known = (table ? table.columns : []).map((column) => column.name);
    const names = [...new Set([...known, ...rows.flatMap((row) => Object.keys(row))])].filter((name) => rows.some((row) => name in row));
    const differ = (name) => rows.length > 1 && rows.some((row) => JSON.stringify(row[name]) !== JSON.stringify(rows[0][name]));
    const first = [...new Set(marked)].filter((name) => names.includes(name));
    const order = [...new Set([...first, ...names.filter(differ), ...names])];
    const mark = (name) => first.includes(name) ? (differ(name) ? "mark differ" : "mark") : null;
    const some = fresh.some(Boolean);
    return scrolls(h("div", {class: `witness ${tone}`, role: "region", "aria-label": "Rows"}, h("table", {},
      h("thead", {}, h("tr", {}, some && h("th", {}), order.map((name) => h("th", {class: mark(name), scope: "col"}, name)))),
      h("tbody", {}, rows.map((row, at) => h("tr", {}, some && h("td", {class: "soft"}, fresh[at] ? "new" : ""), order.map((name) => h("td", {class: mark(name), title: typeof row[name] === "string" ? row[name] : null}, name in row ? cell(row[name]) : ""))))))));
  }
  function detail(table, field, entry) {
    const life = lifeOf(table.name, field, entry.text);
    const known = doc.kinds.some((kind) => kind.field === field);
    const plotted = entry.order && plot(table, entry.order, 560, 300);
    show(entry.sentence || entry.text,
      entry.sentence && h("div", {class: "rule"}, entry.text),
      entry.error ? h("p", {}, `Violated by ${share(entry.error)} of the ${entry.within_a_row ? "rows" : "pairs of rows"}.`) : known && h("p", {class: "soft"}, `Holds ${held(life)}.`),
      entry.rank && h("p", {class: "soft"}, `Matters ${entry.rank.score.toFixed(2)} of 1${entry.rank.reasons.length ? `: ${entry.rank.reasons.join(", ")}` : ""}.${entry.rank.stability ? ` ${capital(entry.rank.stability)}.` : ""}`,
        entry.rank.by_chance && " It may well hold by chance.",
        entry.rank.implied_by && [" Follows from ", entry.rank.implied_by.map((text, at) => [at ? ", " : "", h("code", {}, text)]), "."]),
      plotted && h("div", {class: "plot"}, plotted, h("p", {class: "soft"}, `${number(table.points.columns[entry.order.lhs].length)} of ${plural(table.points.rows, ROWS)}.`)),
      entry.witness && [h("h3", {}, "Two rows that agree here"), rowsTable(entry.witness, entry.columns, table)],
      entry.dependent && entry.coverage !== null && h("p", {}, entry.coverage === 1 ? "All values occur there." : `${share(entry.coverage)} of the values occur there.`),
      "score" in entry && h("p", {}, `How likely it is meant as a foreign key, from 0 to 1: ${entry.score.toFixed(2)}.`),
      !life.calm && [h("h3", {}, "Its life"), h("ul", {}, life.spans.map(([start, end, how]) =>
        h("li", {}, end === null ? `held from version ${start} on` : `held from version ${start}, ${how === "superseded" ? "a shorter one is enough" : how} in version ${end}`)))]);
  }

  // Keys, sets of columns and plain constraints

  function drawEntry(table, field) {
    const now = doc.kinds.some((kind) => kind.field === field);
    return (row, entry) => {
      const sets = entry.columns && !isRule(entry) && !isDependency(entry);
      row.append(h("span", {class: `text ${sets ? "set" : ""}`, title: entry.sentence ? `${entry.sentence}: ${entry.text}` : entry.text},
        sets ? chips(entry.columns) : entry.sentence ? [entry.sentence] : h("code", {}, entry.text)));
      if (entry.witness && entry.columns.every((name) => name in entry.witness[0])) {
        row.append(h("span", {class: "side shared"}, entry.columns.map((name, at) => [at ? " | " : "", cell(entry.witness[0][name])])));
      }
      if (sets && entry.rank && !entry.witness) row.append(h("span", {class: "side shared"}, entry.rank.reasons.join(", ")));
      if (entry.error) row.append(h("span", {class: "side"}, `violated by ${share(entry.error)}`));
      else if (now && doc.versions.length > 1) {
        const life = lifeOf(table.name, field, entry.text);
        row.append(h("span", {class: "side"}, `since ${life.spans[life.spans.length - 1][0]}`));
      }
    };
  }
  function plainList(table, each, title, about) {
    const made = section(title, about);
    if (each.note) made.element.append(h("p", {class: "about"}, capital(each.note)));
    filteredList(made, {label: title, draw: drawEntry(table, each.field), open: (entry) => detail(table, each.field, entry), most: 8},
      () => each.entries, () => each.total, each.nouns);
    return made.element;
  }

  // Functional dependencies: which columns determine which

  function matrix(table, each) {
    const keys = new Set(keysOf(table).map((key) => JSON.stringify(key.columns)));
    const groups = new Map();
    for (const entry of each.entries) {
      const name = JSON.stringify(entry.lhs);
      if (!groups.has(name)) groups.set(name, {lhs: entry.lhs, rhs: new Map(), key: keys.has(name), entries: [], text: "", search: ""});
      const group = groups.get(name);
      group.rhs.set(entry.rhs, entry);
      group.entries.push(entry);
      group.search += ` ${entry.text}`;
    }
    const rows = [...groups.values()];
    const follows = (group) => group.key || group.entries.every((entry) => entry.rank && entry.rank.implied_by);
    const others = rows.filter((group) => !follows(group)), ofKeys = rows.filter(follows);
    const name = `matrix ${table.name}`;
    let keysToo = kept.get(name) ?? !others.length;
    const made = section("Dependencies", "Each line is a set of columns; it determines the columns that are filled: rows that agree on the one agree on the other.");
    if (each.note) made.element.append(h("p", {class: "about"}, capital(each.note)));
    const names = table.columns.map((column) => column.name);
    const longest = Math.max(...rows.map((group) => group.lhs.join(", ").length), 12);
    const view = h("div", {class: "matrix", role: "group", "aria-label": "Dependencies", style: {"--lhs": `${Math.min(420, Math.max(190, longest * 7.9 + 30))}px`}});
    view.append(h("div", {class: "top"}, h("div", {class: "corner"}, "These columns determine …"),
      names.map((column) => h("div", {class: "name", title: column}, h("span", {}, column)))));
    const lines = list({label: `Dependencies of ${table.name}`, items: [], scroller: view,
      // Only as high as what is in it, so that the page does not jump.
      fit: (all) => { view.style.height = all ? `${Math.min(560, view.firstChild.offsetHeight + all + (view.scrollWidth > view.clientWidth ? 14 : 0))}px` : "auto"; },
      draw: (row, group) => {
        row.append(h("span", {class: `lhs ${group.key ? "of-key" : ""}`, title: group.lhs.join(", ")}, group.lhs.join(", ") || "{ }"));
        for (const column of names) {
          const entry = group.rhs.get(column);
          const kind = entry ? (entry.error ? "near" : "yes") : group.lhs.includes(column) ? "in" : "";
          row.append(h("span", {class: `cell ${kind}`, title: entry ? entry.text + (entry.error ? `, violated by ${share(entry.error)}` : "") : null}, kind && h("i")));
        }
        row.setAttribute("aria-label", `${group.lhs.join(", ")} determines ${[...group.rhs.keys()].join(", ")}`);
      },
      open: (group) => show(`${group.lhs.join(", ") || "{ }"} determines`,
        h("p", {class: "soft"}, group.key ? "It is a key, and so determines every column." : null),
        h("ul", {}, group.entries.map((entry) => h("li", {}, h("code", {}, entry.text), entry.rank && entry.rank.implied_by ? ` follows from ${entry.rank.implied_by.join(", ")}; ` : "", entry.error ? ` violated by ${share(entry.error)} of the pairs` : ` ${held(lifeOf(table.name, each.field, entry.text))}`))))});
    view.append(lines.element);
    scrolls(view);
    const legend = h("div", {class: "legend"},
      h("span", {}, h("span", {class: "cell in"}, h("i")), "on the left"), h("span", {}, h("span", {class: "cell yes"}, h("i")), "determined"),
      each.entries.some((entry) => entry.error) && h("span", {}, h("span", {class: "cell near"}, h("i")), "nearly"),
      ofKeys.some((group) => group.key) && h("span", {class: "of-key"}, "blue: a key"));
    const empty = h("div", {class: "empty", hidden: true});
    const panel = h("div", {class: "panel"}, view, empty, legend);
    const button = h("button", {type: "button", class: "quiet", onclick: () => { keysToo = !keysToo; kept.set(name, keysToo); update(); }}, `That follow from others (${number(ofKeys.length)})`);
    if (ofKeys.length && others.length) made.tools.append(button);
    const update = () => {
      const some = keysToo ? rows : others, left = matching(some);
      button.setAttribute("aria-pressed", keysToo);
      lines.set(left);
      view.hidden = legend.hidden = !left.length;
      empty.hidden = !!left.length;
      empty.textContent = some.length ? `None of them matches “${filter.value}”.` : "All of them follow from keys.";
      made.count.textContent = each.entries.length < each.total ? `the first ${number(each.entries.length)} of ${number(each.total)}` : number(each.total);
    };
    made.element.append(panel);
    filtered.push(update);
    requestAnimationFrame(update);
    return made.element;
  }

  // Order rules, with how the data lies

  const dateText = (value, scale) => new Date(value).toISOString().slice(0, scale === "date" ? 10 : 16).replace("T", " ");
  function axisText(value, scale) {
    return scale === "number" ? grouped(+value.toPrecision(6)) : dateText(value, scale);
  }
  function plot(table, order, width, height) {
    const points = table.points;
    if (!points || !points.columns[order.lhs] || !points.columns[order.rhs]) return null;
    const xs = points.columns[order.lhs], ys = points.columns[order.rhs];
    const pairs = xs.map((x, at) => [x, ys[at]]).filter(([x, y]) => x !== null && y !== null);
    if (!pairs.length) return null;
    const bounds = (at) => pairs.reduce(([low, high], pair) => [Math.min(low, pair[at]), Math.max(high, pair[at])], [Infinity, -Infinity]);
    const [x0, x1] = bounds(0), [y0, y1] = bounds(1);
    const EDGE = 6;
    const part = (value, low, high) => high > low ? (value - low) / (high - low) : 0.5;
    const sx = (x) => EDGE + part(x, x0, x1) * (width - 2 * EDGE), sy = (y) => height - EDGE - part(y, y0, y1) * (height - 2 * EDGE);
    const scales = [points.scales[order.lhs], points.scales[order.rhs]];
    const dots = new Map();  // rows that lie on one another are one larger dot
    for (const [x, y] of pairs) { const at = `${sx(x).toFixed(0)} ${sy(y).toFixed(0)}`; dots.set(at, (dots.get(at) || 0) + 1); }
    const across = ticks(x0, x1, scales[0], width > 300 ? 4 : 2), up = ticks(y0, y1, scales[1], 3);
    const picture = s("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${order.rhs} over ${order.lhs}: ${axisText(y0, scales[1])} to ${axisText(y1, scales[1])} over ${axisText(x0, scales[0])} to ${axisText(x1, scales[0])}`},
      s("path", {class: "axis", d: `M0 0V${height}H${width}`}), up.map((y) => s("path", {class: "axis grid", d: `M0 ${sy(y)}H${width}`})), across.map((x) => s("path", {class: "axis", d: `M${sx(x)} ${height}v-5`})),
      [...dots].map(([at, count]) => { const [cx, cy] = at.split(" "); return s("circle", {class: "dot", cx, cy, r: Math.min(7, 1.4 + 0.6 * Math.sqrt(count)).toFixed(1)}); }));
    return framed(picture, up.map((y) => [sy(y) / height, axisText(y, scales[1])]), across.map((x) => [sx(x) / width, axisText(x, scales[0])]), order.rhs, order.lhs);
  }
  // Round numbers, or first days of months or years, between two ends; both ends where there are none.
  function ticks(low, high, scale, most) {
    if (!(high > low)) return [low];
    const some = scale === "number" ? roundNumbers(low, high, most) : days(low, high, most);
    return some.length > 1 ? some : [low, high];
  }
  function roundNumbers(low, high, most) {
    const raw = (high - low) / most, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= raw * 0.999);
    const found = [];
    for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at++) found.push(+(at * step).toPrecision(12));
    return found;
  }
  function days(low, high, most) {
    const DAY = 864e5, months = (high - low) / (30.4 * DAY);
    if (months < most) { const step = Math.max(DAY, Math.ceil((high - low) / most / DAY) * DAY); return [0, 1, 2, 3, 4].map((at) => low + at * step).filter((at) => at <= high); }
    const step = [1, 2, 3, 6, 12, 24, 60, 120, 300, 600, 1200].find((each) => months / each <= most + 1) || 12000;
    const found = [], start = new Date(low);
    for (let at = Math.floor((start.getUTCFullYear() * 12 + start.getUTCMonth()) / step) * step; found.length <= most + 1; at += step) {
      const day = new Date(0);
      day.setUTCFullYear(Math.floor(at / 12), at % 12, 1);
      if (+day > high) break;
      if (+day >= low) found.push(+day);
    }
    return found;
  }
  // A picture with its axes. What stands at them is text beside it, as large as other text however wide the picture is; places are shares of it.
  function framed(picture, ys, xs, yName, xName) {
    const widest = Math.max(...ys.map(([, words]) => words.length));
    const label = (side) => ([at, words]) => h("span", {style: {[side]: `${at * 100}%`}, class: at < 0.1 ? "low" : at > 0.9 ? "high" : null}, words);
    return h("div", {class: "framed", style: {"--ys": `${widest}ch`}}, yName && h("div", {class: "name", title: yName}, `↑ ${yName}`),
      h("div", {class: "ys", "aria-hidden": "true"}, ys.map(label("top"))), picture, h("div", {class: "xs", "aria-hidden": "true"}, xs.map(label("left"))), xName && h("div", {class: "name x", title: xName}, `${xName} →`));
  }
  const clip = (text, most) => text.length > most ? `${text.slice(0, most - 1)}…` : text;

  function rules(table, each) {
    const made = section("Rules", "What no two rows do; what matters most comes first, and what puts columns in order is said in words.");
    if (each.note) made.element.append(h("p", {class: "about"}, capital(each.note)));
    const drawn = each.entries.filter((entry) => entry.form === "order" && !entry.error).slice(0, 12)
      .map((entry) => [entry, plot(table, entry.order, 240, 150)]).filter(([, picture]) => picture);
    if (drawn.length) {
      made.element.append(h("div", {class: "plots"}, drawn.map(([entry, picture]) =>
        h("button", {type: "button", class: "plot", onclick: () => detail(table, each.field, entry)}, h("p", {}, entry.sentence), picture))));
    }
    const forms = [["order", "order"], ["conditional", "order within"], ["other", "others"], ["key", "keys"], ["fd", "dependencies"]];
    const name = `rules ${table.name}`;
    let form = kept.get(name) ?? null;
    const counts = new Map(forms.map(([id]) => [id, each.entries.filter((entry) => entry.form === id).length]));
    const buttons = forms.filter(([id]) => counts.get(id)).map(([id, words]) => h("button", {type: "button", class: "quiet", "aria-pressed": form === id,
      onclick: () => { form = form === id ? null : id; kept.set(name, form); buttons.forEach((one, at) => one.setAttribute("aria-pressed", form === shownForms[at])); update(); }}, `${words} ${number(counts.get(id))}`));
    const shownForms = forms.filter(([id]) => counts.get(id)).map(([id]) => id);
    made.tools.append(...buttons);
    made.partial = true;
    const update = filteredList(made, {label: `Rules of ${table.name}`, draw: drawEntry(table, each.field), open: (entry) => detail(table, each.field, entry)},
      () => form ? each.entries.filter((entry) => entry.form === form) : each.entries, () => form ? counts.get(form) : each.total, each.nouns);
    return made.element;
  }

  // The tables and how they refer to each other

  function diagram() {
    const found = references(), all = found ? found.entries : [], edges = likelyReferences(), rest = all.length - edges.length;
    const made = section("Tables", edges.length ? `An arrow leads from a foreign key to what it refers to.${rest ? ` ${plural(rest, ["less likely one is", "less likely ones are"])} listed with ${rest === 1 ? "its table" : "their tables"}.` : ""}` : null);
    made.count.textContent = plural(edges.length, ["likely foreign key", "likely foreign keys"]);
    if (!edges.length) {
      made.element.append(h("div", {class: "panel empty"}, doc.tables.length < 2 ? "There is one table, so nothing refers to another."
        : found ? "No column looks like a foreign key." : "No foreign keys are known."));
      return made.element;
    }
    const LINE = 19, HEAD = 44, GAP_Y = 22;
    const nodes = new Map(doc.tables.map((table) => {
      const key = table.grain.columns || [];
      const names = [...new Set([...key, ...edges.flatMap((each) => [each.dependent, each.referenced].filter((side) => side.table === table.name).flatMap((side) => side.columns))])];
      const order = table.columns.map((column) => column.name);
      const lines = names.sort((one, two) => order.indexOf(one) - order.indexOf(two));
      return [table.name, {table, lines, key, height: HEAD + lines.length * LINE + 8, near: []}];
    }));
    // A table stands right of all that refer to it; a circle is cut where it is closed.
    const from = new Map();
    for (const {dependent, referenced} of edges) {
      if (dependent.table !== referenced.table) from.set(referenced.table, (from.get(referenced.table) || new Set()).add(dependent.table));
    }
    const depth = new Map(), open = new Set();
    const depthOf = (name) => {
      if (depth.has(name)) return depth.get(name);
      if (open.has(name)) return 0;
      open.add(name);
      const deepest = Math.max(-1, ...[...(from.get(name) || [])].map(depthOf)) + 1;
      open.delete(name);
      depth.set(name, deepest);
      return deepest;
    };
    const deepest = Math.max(...[...nodes.keys()].map(depthOf));
    const every = Array.from({length: deepest + 1}, () => []);
    const joined = new Set(edges.flatMap((each) => [each.dependent.table, each.referenced.table]));
    const alone = [];
    for (const [name, node] of nodes) (joined.has(name) ? every[depth.get(name)] : alone).push(node);
    const layers = every.filter((layer) => layer.length);  // a circle may leave one empty
    alone.forEach((node, at) => layers[at % layers.length].push(node));
    layers.forEach((layer, at) => { for (const node of layer) node.layer = at; });
    // An arrow that passes a layer has a place of its own in it, so that it runs behind no table.
    const ways = edges.map((each) => {
      const start = nodes.get(each.dependent.table), end = nodes.get(each.referenced.table), step = Math.sign(end.layer - start.layer);
      const way = [start];
      for (let layer = start.layer + step; step && layer !== end.layer; layer += step) {
        const passing = {layer, height: 6, near: []};
        layers[layer].push(passing);
        way.push(passing);
      }
      way.push(end);
      for (let at = 1; at < way.length; at++) { way[at].near.push(way[at - 1]); way[at - 1].near.push(way[at]); }
      return way;
    });
    for (const layer of layers) layer.forEach((node, at) => { node.rank = at; });
    for (let round = 0; round < 8; round++) {
      for (const layer of round % 2 ? [...layers].reverse() : layers) {
        for (const node of layer) {
          const ranks = node.near.filter((each) => each.layer !== node.layer).map((each) => (each.rank + 0.5) / layers[each.layer].length);
          node.mean = ranks.length ? ranks.reduce((sum, rank) => sum + rank, 0) / ranks.length : 99;
        }
        layer.sort((one, two) => one.mean - two.mean);
        layer.forEach((node, at) => { node.rank = at; });
      }
    }
    // As wide as there is room for, within what can be read.
    const looping = layers.flatMap((layer, at) => edges.some((each) => nodes.get(each.dependent.table).layer === at && nodes.get(each.referenced.table).layer === at) ? [at] : []);
    const end = looping.includes(layers.length - 1) ? 40 : 0, space = main.clientWidth - 80 - end - 8, gaps = layers.length - 1;
    const wide = Math.min(1, Math.max(0, (space - layers.length * 150 - gaps * 50) / (layers.length * 36 + gaps * 42)));
    const WIDE = Math.round(150 + 36 * wide), GAP_X = Math.round(50 + 42 * wide);
    const heights = layers.map((layer) => layer.reduce((sum, node) => sum + node.height + GAP_Y, -GAP_Y));
    const tall = Math.max(...heights);
    layers.forEach((layer, column) => {
      let y = 4 + (tall - heights[column]) / 2;
      for (const node of layer) { node.x = 4 + column * (WIDE + GAP_X); node.y = y; y += node.height + GAP_Y; }
    });
    const width = layers.length * (WIDE + GAP_X) - GAP_X + 8 + end;
    const lineAt = (node, column) => node.y + HEAD + node.lines.indexOf(column) * LINE + LINE / 2;
    // Where an arrow meets a table: at its column, or where a bracket joins its columns.
    function joint(node, columns, side) {
      const lines = columns.map((column) => lineAt(node, column)), top = Math.min(...lines), bottom = Math.max(...lines);
      const x = node.x + (side > 0 ? WIDE : 0);
      if (columns.length === 1) return {x, y: top};
      return {x: x + side * 6, y: (top + bottom) / 2, bracket: s("path", {class: "bracket", d: `M${x} ${top}h${side * 6}V${bottom}h${side * -6}`})};
    }
    const paths = edges.map((each, at) => {
      const way = ways[at], start = way[0], to = way[way.length - 1];
      // To the right, back to the left, or round the right side to a table above or below.
      const step = Math.sign(to.layer - start.layer), out = step < 0 ? -1 : 1, back = step ? -out : 1;
      const one = joint(start, each.dependent.columns, out), two = joint(to, each.referenced.columns, back);
      let d = `M${one.x} ${one.y}`, x = one.x, y = one.y;
      const curve = (nextX, nextY) => { const middle = (x + nextX) / 2; d += `C${middle} ${y} ${middle} ${nextY} ${nextX} ${nextY}`; [x, y] = [nextX, nextY]; };
      for (const passing of way.slice(1, -1)) {
        curve(passing.x + (out > 0 ? 0 : WIDE), passing.y + passing.height / 2);
        x += out * WIDE;
        d += `H${x}`;
      }
      if (step) curve(two.x + back * 3, two.y);
      else d += `C${x + 38} ${y} ${two.x + 38} ${two.y} ${two.x + 3} ${two.y}`;
      return [one.bracket, two.bracket, s("path", {class: "edge", "marker-end": "url(#tip)", d}, s("title", {}, `${each.text}, score ${each.score.toFixed(2)}`))];
    });
    const boxes = [...nodes.values()].map((node) => s("a", {href: address(node.table.name), "aria-label": `${node.table.name}, ${plural(node.table.rows, ROWS)}`},
      s("rect", {class: "box", x: node.x, y: node.y, width: WIDE, height: node.height, rx: 8}),
      s("path", {class: "cap", d: `M${node.x + .5} ${node.y + HEAD - 8}v-${HEAD - 16}a8 8 0 0 1 8 -7.5h${WIDE - 17}a8 8 0 0 1 8 7.500v${HEAD - 16}z`}),
      s("text", {class: "name", x: node.x + 12, y: node.y + 17}, clip(node.table.name, Math.floor(WIDE / 7.8))),
      s("text", {class: "quiet-text", x: node.x + 12, y: node.y + 31}, plural(node.table.rows, ROWS)),
      node.lines.map((column, at) => [
        node.key.includes(column) && s("circle", {class: "keymark", cx: node.x + 14, cy: node.y + HEAD + at * LINE + LINE / 2, r: 3}),
        s("text", {x: node.x + 24, y: node.y + HEAD + at * LINE + 14}, clip(column, Math.floor((WIDE - 30) / 7.3)))])));
    made.element.append(h("div", {class: "panel"},
      scrolls(h("div", {class: "diagram", role: "group", "aria-label": "Diagram of tables"}, s("svg", {width, height: tall + 8, viewBox: `0 0 ${width} ${tall + 8}`},
        s("defs", {}, s("marker", {id: "tip", viewBox: "0 0 8 8", refX: 6, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse"}, s("path", {class: "tip", d: "M0 0L8 4L0 8z"}))),
        paths, boxes))),
      h("div", {class: "legend"}, h("span", {}, s("svg", {width: 8, height: 8}, s("circle", {class: "keymark", cx: 4, cy: 4, r: 3})), "the grain: one row per these columns"))));
    return made.element;
  }

  function tablesTable() {
    const made = section("What a row is", null);
    made.count.textContent = plural(doc.tables.length, ["table", "tables"]);
    const nearly = doc.tables.some((table) => table.near && table.near.rules.length);
    const kinds = doc.tables.some((table) => table.lists.length) ? [...new Map(doc.tables.flatMap((table) => table.lists.map((each) => [each.field, each]))).values()].filter((each) => doc.kinds.some((kind) => kind.field === each.field)) : [];
    const body = h("tbody");
    const update = () => {
      const wanted = asked();
      body.replaceChildren(...doc.tables.filter((table) => wanted.every((word) => `${table.name} ${table.columns.map((each) => each.name).join(" ")}`.toLowerCase().includes(word))).map((table) =>
        h("tr", {class: "link", onclick: () => { location.hash = address(table.name); }},
          h("td", {}, h("a", {href: address(table.name)}, table.name)),
          h("td", {class: "num"}, number(table.rows)), h("td", {class: "num"}, number(table.columns.length)),
          h("td", {}, table.grain.columns ? chips(table.grain.columns) : h("span", {class: "soft"}, table.grain.reason)),
          kinds.map((kind) => { const mine = table.lists.find((each) => each.field === kind.field); return h("td", {class: "num"}, mine ? number(mine.total) : "–"); }), nearly && h("td", {class: "num"}, table.near ? number(table.near.rules.length + table.near.more) : "–"))));
    };
    filtered.push(update);
    update();
    made.element.append(h("div", {class: "panel"}, scrolls(h("div", {class: "scroll", role: "region", "aria-label": "Tables and their grains"}, h("table", {}, h("thead", {}, h("tr", {}, h("th", {scope: "col"}, "table"), h("th", {scope: "col", class: "num"}, "rows"), h("th", {scope: "col", class: "num"}, "columns"), h("th", {scope: "col"}, "one row per"), kinds.map((kind) => h("th", {scope: "col", class: "num"}, kind.nouns[1])), nearly && h("th", {scope: "col", class: "num"}, "nearly hold"))), body)))));
    return made.element;
  }

  // What is expected, violated rules first, of a table or of all

  function expectations(table) {
    const urgency = (each) => each.holds ? 2 : each.severity === "error" ? 0 : 1;
    const mine = (doc.expectations || []).filter((each) => !table || each.tables.includes(table.name)).sort((one, two) => urgency(one) - urgency(two));
    if (!mine.length) return null;
    for (const each of mine) each.search = `${each.name || ""} ${each.holds ? "holds" : "violated"}`;
    const made = section("Expectations", null);
    const tone = (each) => each.holds ? "good" : each.severity === "error" ? "bad" : "warn";
    const far = (each) => [each.violated_by, !each.holds && each.severity !== "error" && "only a warning"].filter(Boolean).join(", ");
    filteredList(made, {label: "Expectations", extra: "expected", most: 8, open: (each) => show(each.name || each.text,
      each.name && h("div", {class: "rule"}, each.text),
      h("p", {}, h("span", {class: tone(each)}, each.holds ? "Holds" : "Does not hold"), each.violated_by ? `: ${each.violated_by}.` : "."),
      h("p", {class: "soft"}, each.severity === "error" ? "A batch that breaks it fails a check." : "A batch that breaks it is only warned of.", each.max_error ? ` An error of ${share(each.max_error)} is allowed.` : "",
        each.max_rows === null ? "" : ` ${plural(each.max_rows, ROWS)} may break it.`),
      h("p", {class: "soft"}, "About ", each.tables.map((name, at) => [at ? ", " : "", h("a", {href: address(name)}, name)]), ".")),
    draw: (row, each) => {
      row.append(h("span", {class: `state ${tone(each)}`}, each.holds ? "holds" : "violated"),
        h("span", {class: "text"}, each.name && h("span", {class: "name"}, each.name, " "), h("code", {class: each.name ? "soft" : null}, each.text)));
      if (far(each)) row.append(h("span", {class: "side", title: far(each)}, far(each)));
    }}, () => mine, () => mine.length, ["expectation", "expectations"]);
    const failing = mine.filter((each) => !each.holds), worst = failing.some((each) => each.severity === "error") ? "bad" : "warn";
    made.count.after(h("span", {class: `count ${failing.length ? worst : "good"}`}, failing.length ? `${number(failing.length)} violated` : "all hold"));
    return made.element;
  }

  // Columns of a table

  function columnsTable(table) {
    const made = section("Columns", null);
    made.count.textContent = number(table.columns.length);
    const foreign = likelyReferences(), grain = table.grain.columns || [];
    const keys = table.duplicates ? [] : keysOf(table), dependencies = listOf(table, isDependency).flatMap((each) => each.entries).filter((entry) => !entry.error);
    const roles = (name) => [
      grain.includes(name) && h("span", {class: "tag grain", title: `One row per ${grain.join(", ")}`}, "grain"),
      keys.some((key) => key.columns.length === 1 && key.columns[0] === name) && h("span", {class: "tag"}, "key"),
      foreign.filter((each) => each.dependent.table === table.name && each.dependent.columns.includes(name))
        .map((each) => h("span", {class: "tag"}, "→ ", h("a", {href: address(each.referenced.table)}, `${each.referenced.table}.${each.referenced.columns[each.dependent.columns.indexOf(name)]}`))),
      dependencies.some((entry) => entry.rhs === name && !entry.lhs.length) && h("span", {class: "tag"}, "constant"),
      dependencies.filter((entry) => entry.rhs === name && entry.lhs.length === 1 && !keys.some((key) => key.columns.length === 1 && key.columns[0] === entry.lhs[0])).slice(0, 3)
        .map((entry) => h("span", {class: "tag"}, `determined by ${entry.lhs[0]}`))];
    const extra = [...new Set(table.columns.flatMap((column) => Object.keys(column.facts || {})))].filter((name) => name !== "estimated");
    const body = h("tbody");
    const update = () => {
      const wanted = asked();
      const left = table.columns.filter((column) => wanted.every((word) => `${column.name} ${column.type}`.toLowerCase().includes(word)));
      const some = left.length ? left : table.columns;
      body.replaceChildren(...some.map((column) => h("tr", {}, h("td", {}, h("code", {}, column.name)), h("td", {class: "soft"}, column.type),
        extra.map((name) => h("td", {class: `num${isEnd(name) ? " limit" : ""}`}, fact(name, column.facts || {}))), h("td", {}, roles(column.name)))));
    };
    filtered.push(update);
    update();
    made.element.append(h("div", {class: "panel"}, scrolls(h("div", {class: `scroll ${table.columns.length > 16 ? "tall" : ""}`, tabindex: table.columns.length > 16 ? "0" : null, role: "region", "aria-label": `Columns of ${table.name}`}, h("table", {}, h("thead", {}, h("tr", {}, h("th", {scope: "col"}, "column"), h("th", {scope: "col"}, "type"), extra.map((name) => h("th", {scope: "col", class: "num"}, name)), h("th", {scope: "col"}, ""))), body)))));
    return made.element;
  }
  const isEnd = (name) => name === "minimum" || name === "maximum";
  const fact = (name, facts) => {
    const value = facts[name];
    if (value === null || value === undefined) return "";
    if (isEnd(name)) return h("span", {title: cell(value)}, typeof value === "number" ? grouped(value) : cell(value));
    return typeof value === "number" ? `${name === "distinct" && facts.estimated ? "about " : ""}${number(value)}` : cell(value);
  };

  // Rules that a few rows break, and the cells that they suspect

  function nearRules(table) {
    const near = table.near, suspects = table.suspects;
    if (!near || !near.rules.length) return null;
    const made = section("Nearly holds", "A few rows break these rules. Either the rows are wrong, or the rule is.");
    filteredList(made, {label: "Rules that nearly hold", most: 8, open: (each) => show(each.text, h("p", {}, `${capital(each.sentence)}.`),
      each.strength !== undefined && h("p", {class: "soft"}, `${capital(listed(each.lhs))} ${each.lhs.length === 1 ? "explains" : "explain"} ${share(each.strength)} of ${each.rhs} beyond chance.`),
      h("p", {class: "soft"}, "These commands show the rows, and expect the rule of all further ones:"), h("p", {class: "rule"}, `holdfast ${each.suspects ? "suspects" : "explain"} ${doc.name} ${quoted(each.rule)}`), h("p", {class: "rule"}, `holdfast expect ${doc.name} ${quoted(each.rule)} --max-rows ${each.removal}`)),
    draw: (row, each) => row.append(h("span", {class: "text"}, h("code", {}, each.text)), h("span", {class: "side"}, each.sentence))},
    () => near.rules, () => near.rules.length + near.more, ["rule", "rules"]);
    if (!suspects) {
      if (doc.values) made.element.append(h("p", {class: "about below"}, "This list shows the cells that they suspect: ", h("code", {}, `holdfast suspects ${doc.name} --table ${table.name}`)));
    } else if (suspects.cells.length) made.element.append(suspected(table, suspects));
    return made.element;
  }
  function suspected(table, {total, cells}) {
    const values = (each) => each.columns.map((name, at) => [at ? ", " : "", cell(each.row[name] ?? null)]);
    // What tells the row from others, if that is not suspected; or else the cells that come first.
    const told = ({row_key: key, row, columns}) => key && !columns.some((name) => name in key) ? Object.values(key) : Object.keys(row).filter((name) => !columns.includes(name)).slice(0, 2).map((name) => row[name]);
    const said = (each) => each.suggested !== null ? cell(each.suggested) : each.suspicion ? h("span", {class: "soft"}, each.suspicion) : cell(null);
    const open = (each) => show(`${listed(each.columns)} in ${table.name}`, h("div", {class: "rule"}, each.rule),
      h("p", {}, each.suspicion ? `${capital(each.suspicion)}.` : ["Most rows that agree with this one have ", h("b", {}, cell(each.suggested)), `: ${number(each.agreeing)} of ${number(each.group)}.`]),
      h("p", {class: "soft"}, `${plural(each.rules, ["rule suspects", "rules suspect"])} it; their strengths add up to ${each.score.toFixed(2)}.`), rowsTable([each.row], each.columns, table));
    const body = h("tbody", {}, cells.map((each) => h("tr", {class: "link", tabindex: "0", onclick: () => open(each), onkeydown: (event) => { if (event.key === "Enter") open(each); }},
      h("td", {class: "num"}, each.score.toFixed(2)), h("td", {}, told(each).map((value, at) => [at ? ", " : "", cell(value)])),
      h("td", {}, h("code", {}, listed(each.columns))), h("td", {class: "warn"}, values(each)), h("td", {}, said(each)), h("td", {class: "soft"}, h("code", {}, each.rule)))));
    const heads = ["score", "row", "column", "value", "suggested", "by"];
    return h("div", {class: "suspects"}, h("div", {class: "head"}, h("h3", {}, "Suspects"), h("span", {class: "count"}, cells.length < total ? `the first ${number(cells.length)} of ${number(total)}` : number(total))),
      h("div", {class: "panel"}, scrolls(h("div", {class: "scroll tall", role: "region", "aria-label": "Suspects"}, h("table", {}, h("thead", {}, h("tr", {}, heads.map((head, at) => h("th", {scope: "col", class: at ? null : "num"}, head)))), body)))));
  }

  function referencesOf(table) {
    const likely = (each) => each.entries.length && "score" in each.entries[0] ? 0 : 1;
    return [...doc.lists].sort((one, two) => likely(one) - likely(two)).map((each) => {
      const mine = each.entries.filter((entry) => entry.dependent && [entry.dependent.table, entry.referenced.table].includes(table.name));
      if (!each.entries.length || !mine.length) return null;
      const made = section(capital(each.nouns[1]), null);
      filteredList(made, {label: each.nouns[1], most: 6, open: (entry) => detail(table, each.field, entry), draw: (row, entry) => {
        row.append(h("span", {class: "text"}, h("code", {}, entry.text)));
        if ("score" in entry) row.append(h("span", {class: "side"}, `score ${entry.score.toFixed(2)}`));
        else if (entry.coverage !== null && entry.coverage < 1) row.append(h("span", {class: "side"}, share(entry.coverage)));
      }}, () => mine, () => mine.length, each.nouns);
      return made.element;
    });
  }

  // When constraints began and ended

  function lifetimes(table) {
    const all = doc.lives[table.name] || [];
    if (!all.length) return null;
    const made = section("Lifetimes", "Constraints that came or went with a batch, and from which version to which each held.");
    const expected = new Set((doc.expectations || []).filter((each) => each.severity === "error").map((each) => each.text));
    const isExpected = (life) => expected.has(life.text) || expected.has(`${table.name}: ${life.text}`);
    const first = doc.versions[0].version, last = doc.versions[doc.versions.length - 1].version;
    const name = `lives ${table.name}`;
    let field = kept.get(name) ?? null;
    const fields = doc.kinds.filter((kind) => all.some((life) => life.field === kind.field));
    const buttons = fields.map((kind) => h("button", {type: "button", class: "quiet", "aria-pressed": field === kind.field, onclick: () => {
      field = field === kind.field ? null : kind.field; kept.set(name, field);
      buttons.forEach((one, at) => one.setAttribute("aria-pressed", field === fields[at].field)); update();
    }}, kind.nouns[1]));
    made.tools.append(...buttons);
    const at = (version) => `${(version - first) / (last - first + 1) * 100}%`;
    made.partial = true;
    const update = filteredList(made, {label: `Lifetimes in ${table.name}`, extra: "lives", height: 30, most: 12, draw: (row, life) => {
      row.append(h("span", {class: "text", title: life.text}, h("code", {}, life.text)), h("span", {class: "track"}, life.spans.map(([start, end, how]) => [
        h("span", {class: "span", title: end === null ? `since version ${start}` : `version ${start} to ${end}, ${how}`, style: {left: at(start), width: `calc(${at((end ?? last + 1) - start + first)} - 1px)`}}),
        end !== null && h("span", {class: `end ${how !== "broken" ? "soft-end" : isExpected(life) ? "bad-end" : ""}`, style: {left: at(end)}})])));
      row.setAttribute("aria-label", `${life.text}: ${life.spans.map(([start, end, how]) => end === null ? `since version ${start}` : `version ${start} to ${end}, ${how}`).join("; ")}`);
    }}, () => field ? all.filter((life) => life.field === field) : all, () => field ? all.filter((life) => life.field === field).length : all.length, ["constraint", "constraints"]);
    const panel = made.element.querySelector(".panel");
    const named = roundNumbers(first, last, 6).filter((version) => Number.isInteger(version));
    panel.prepend(h("div", {class: "scale", "aria-hidden": "true"}, h("span", {}, "version"), h("div", {}, named.map((version) => h("span", {style: {left: at(version)}}, version)))));
    panel.append(h("div", {class: "legend"}, h("span", {}, h("span", {class: "fill"}, s("svg", {width: 18, height: 8}, s("rect", {class: "fill-accent", width: 18, height: 6, y: 1, rx: 3}))), "held"),
      h("span", {}, s("svg", {width: 4, height: 12}, s("rect", {class: "fill-soft", width: 3, height: 12, rx: 1})), "broken"),
      h("span", {}, s("svg", {width: 4, height: 12}, s("rect", {class: "fill-faint", width: 3, height: 12, rx: 1})), "a shorter one was enough"),
      all.some((life) => isExpected(life) && life.spans.some((span) => span[2] === "broken")) && h("span", {}, s("svg", {width: 4, height: 12}, s("rect", {class: "fill-bad", width: 3, height: 12, rx: 1})), "an expected rule broke")));
    return made.element;
  }

  // Batches

  const changed = (batch, what) => Object.values(batch.changes).reduce((sum, each) => sum + (each.counts[what] || 0), 0);
  const rowsChanged = (batch) => [["+", batch.inserted], ["−", batch.deleted], ["~", batch.updated]].filter(([, count]) => count).map(([sign, count]) => `${sign}${number(count)}`).join(" ") || "0";

  // Bars of some batches, one beside the other, over their versions. `least` and `most` are the ends of what is drawn.
  function chart(title, events, least, most, words, bars) {
    const SIZE = 1000, HEIGHT = 100, size = Math.min(SIZE / 12, SIZE / events.length), gap = size * 0.16;
    const y = (value) => (most - value) / (most - least) * HEIGHT;
    const up = roundNumbers(least, most, 3).filter((value) => words !== number || Number.isInteger(value)), every = Math.ceil(events.length / 12);
    const picture = s("svg", {viewBox: `0 0 ${SIZE} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": title},
      up.map((value) => s("path", {class: `axis ${value ? "grid" : ""}`, d: `M0 ${y(value)}H${SIZE}`})),
      events.map((event, at) => bars(event).map(([tone, from, to, about]) => s("rect", {class: tone, x: at * size + gap / 2, width: size - gap, y: y(Math.max(from, to)), height: y(Math.min(from, to)) - y(Math.max(from, to))}, s("title", {}, `version ${event.version.version}: ${about}`)))));
    const named = events.map((event, at) => [(at + 0.5) * size / SIZE, event.version.version, at]).filter(([, , at]) => at % every === 0);
    return h("div", {class: "panel chart"}, h("h3", {}, title), framed(picture, up.map((value) => [y(value) / HEIGHT, words(Math.abs(value))]), named.map(([at, version]) => [at, String(version)]), null, "version"));
  }
  // What became of the expected rules that a batch concerns.
  function outcome(expected) {
    if (!expected) return null;
    const breaks = expected.violated.filter((each) => each.breaks), stops = breaks.filter((each) => each.severity === "error").length;
    const all = expected.holding + expected.violated.length;
    if (breaks.length) return {words: `${number(breaks.length)} of ${number(all)} broken`, tone: stops ? "bad" : "warn", breaks, stops};
    if (!all) return {words: "none", tone: "soft", breaks, stops};
    return {words: expected.violated.length ? `${number(expected.holding)} of ${number(all)} hold` : `${number(all)} hold`, tone: expected.violated.length ? "warn" : "good", breaks, stops};
  }
  // Of a profile with expectations, what they say of each batch; without, what came and went.
  function expectedChart(events) {
    const breaks = (each) => each.expected ? each.expected.breaks.length : 0, stops = (each) => each.expected ? each.expected.stops : 0;
    const warned = events.some((each) => breaks(each) > stops(each)), most = Math.max(...events.map(breaks), 1);
    return chart(`Expected rules that each batch broke${warned ? ", in amber only a warning" : ""}`, events, 0, most, number, (each) => [
      ["fill-bad", 0, stops(each), `${plural(stops(each), ["expected rule", "expected rules"])} broken`],
      ["fill-warn", stops(each), breaks(each), `${plural(breaks(each) - stops(each), ["expected rule", "expected rules"])} broken, only a warning`]]);
  }
  function changesChart(events) {
    const gained = ({batch}) => changed(batch, "gained"), broken = ({batch}) => changed(batch, "broken");
    return chart("Constraints gained and broken", events, -Math.max(...events.map(broken), 1), Math.max(...events.map(gained), 1), number, (each) => [
      ["fill-accent", 0, gained(each), `${number(gained(each))} gained`], ["fill-faint", 0, -broken(each), `${number(broken(each))} broken`]]);
  }
  function history(table) {
    const made = section("Batches", null);
    const events = doc.versions.flatMap((version) => version.batches.length
      ? version.batches.filter((batch) => !table || batch.table === table.name).map((batch) => ({version, batch}))
      : !table || version.numbers[table.name] ? [{version, batch: null}] : []);
    for (const each of events) {
      const {version, batch} = each;
      each.expected = batch && outcome(batch.expected);
      const broken = batch ? [...(each.expected ? each.expected.breaks : []), ...Object.values(batch.changes).flatMap((one) => one.broken || [])] : [];
      each.search = `version ${version.version} ${batch ? `${batch.table} ${batch.batch_id || ""} ${broken.map((one) => `${one.name || ""} ${one.text}`).join(" ")}` : version.what}`;
    }
    const some = events.filter((each) => each.batch).slice(-120);
    if (some.length) {
      const slowest = Math.max(...some.map(({version}) => total(version)), 1e-3);
      made.element.append(h("div", {class: "charts"}, chart("Time of each batch", some, 0, slowest, (value) => value ? seconds(value) : "0", ({version}) => [["fill-accent", 0, total(version), seconds(total(version))]]),
        some.some((each) => each.expected) ? expectedChart(some) : changesChart(some)));
    }
    events.reverse();
    filteredList(made, {label: "Batches", extra: "batch", open: batchDetail, most: 10, draw: (row, {version, batch, expected}) => {
      row.append(h("span", {class: "v"}, version.version), h("span", {class: "when"}, moment(version.created)));
      if (!batch) { row.append(h("span", {class: "text soft"}, version.what)); return; }
      const broken = changed(batch, "broken"), gained = changed(batch, "gained");
      row.append(h("span", {class: "text"}, table ? null : `${batch.table} `, h("span", {class: "soft"}, batch.batch_id || ""), batch.quarantined && [" ", h("span", {class: "warn left-out"}, `${plural(batch.quarantined.rows, ROWS)} quarantined`)]), h("span", {class: "n"}, rowsChanged(batch)),
        h("span", {class: `n wide expect ${expected ? expected.tone : "soft"}`}, expected ? expected.words : "–"),
        h("span", {class: "n hide soft"}, broken ? number(broken) : "–"), h("span", {class: "n hide soft"}, gained ? number(gained) : "–"),
        h("span", {class: "n hide soft"}, seconds(total(version))));
    }}, () => events, () => events.length, ["batch", "batches"]);
    if (some.length) made.element.querySelector(".list").before(h("div", {class: "heads batch", "aria-hidden": "true"}, h("span", {class: "v"}, "version"), h("span", {class: "when"}, "committed"), h("span", {class: "text"}, "batch"), h("span", {class: "n"}, "rows"),
      h("span", {class: "n wide"}, "expected rules"), h("span", {class: "n hide"}, "broken"), h("span", {class: "n hide"}, "gained"), h("span", {class: "n hide"}, "time")));
    return made.element;
  }
  // Rows of a batch that were not applied: how many, by which rules, and where they are.
  const leftOut = (left) => left && h("div", {class: "change"}, h("h3", {class: "warn"}, `${plural(left.rows, ROWS)} quarantined, not applied`),
    h("ul", {}, Object.entries(left.rules).map(([rule, count]) => h("li", {}, `${number(count)} by `, h("code", {}, rule))), left.files.map((file) => h("li", {class: "soft"}, file))));
  function batchDetail({version, batch}) {
    if (!batch) {
      show(`Version ${version.version}: ${version.what}`, h("p", {class: "soft"}, `${moment(version.created)} UTC`),
        h("ul", {}, Object.entries(version.numbers).map(([name, numbers]) => h("li", {}, `${name}: ${plural(numbers.rows, ROWS)}`))));
      return;
    }
    const spent = total(version), stages = Object.entries(version.seconds).filter(([, each]) => each > 0);
    const others = [...besides(batch), ...(batch.near || []).map((sentence) => h("p", {class: "near"}, sentence))];
    show(`${batch.table}, version ${version.version}${batch.batch_id ? `: ${batch.batch_id}` : ""}`,
      h("p", {class: "soft"}, `${moment(version.created)} UTC · ${number(batch.inserted)} inserted, ${number(batch.deleted)} deleted, ${number(batch.updated)} updated${batch.unchanged ? `, ${number(batch.unchanged)} unchanged` : ""}${batch.quarantined ? `, ${number(batch.quarantined.rows)} quarantined` : ""} · ${plural(batch.rows, ROWS)} then · ${seconds(spent)}${version.batches.length > 1 ? ` for ${version.batches.length} tables together` : ""}`),
      whatWasExpected(batch), leftOut(batch.quarantined),
      batch.duplicated.length ? [h("h3", {}, "A row that is there twice"), rowsTable(batch.duplicated, [], tableOf(batch.table))] : null,
      !others.length ? h("p", {class: "soft"}, batch.expected ? "Nothing else was gained or broken." : "Nothing gained, nothing broken.")
        : batch.expected ? h("details", {}, h("summary", {}, "Besides, not expected"), others) : others,
      spent > 0 && h("div", {}, h("h3", {}, "Time"), h("div", {class: "stages", role: "img", "aria-label": "Time by stage"}, stages.map(([name, each]) => h("i", {title: `${name} ${seconds(each)}`, style: {width: `${each / spent * 100}%`}}))), h("p", {class: "soft"}, stages.map(([name, each]) => `${name} ${seconds(each)}`).join(", "))));
  }
  // The expected rules: those that broke, with rows; and how many hold, or did not hold before.
  function whatWasExpected(batch) {
    if (!batch.expected) return null;
    const RULE = ["expected rule", "expected rules"], {breaks} = outcome(batch.expected), before = batch.expected.violated.length - breaks.length;
    const one = (each) => [
      h("p", {class: "rule"}, each.name && h("b", {}, each.name, h("br")), each.text), each.violated_by && h("p", {}, `${capital(each.violated_by)}.`),
      (each.groups || []).map((group) => [group.about && h("p", {class: "soft"}, `${group.about}.`), rowsTable(group.rows, each.columns, tableOf(batch.table), "bad", group.new),
        group.number > group.rows.length && h("p", {class: "soft"}, `and ${plural(group.number - group.rows.length, ["more row", "more rows"])}`)])];
    const block = (some, words, tone) => some.length ? h("div", {class: "change expected-rules"}, h("h3", {class: tone}, `${plural(some.length, RULE)} ${words}`), some.map(one)) : null;
    return [block(breaks.filter((each) => each.severity === "error"), "broken", "bad"), block(breaks.filter((each) => each.severity !== "error"), "broken, only a warning", "warn"),
      before > 0 && h("p", {class: "warn"}, `${plural(before, RULE)} did not hold before; this batch adds nothing to that.`),
      batch.expected.holding > 0 && h("p", {class: "good"}, `${plural(batch.expected.holding, RULE)} ${batch.expected.holding === 1 ? "holds" : "hold"}.`)];
  }
  // What else came and went, by kind.
  function besides(batch) {
    const names = new Map(doc.kinds.map((kind) => [kind.field, kind.nouns]));
    const told = new Set(batch.expected ? batch.expected.violated.map((each) => each.text) : []);
    const isTold = (one) => told.has(one.text) || told.has(`${batch.table}: ${one.text}`);
    return Object.entries(batch.changes).flatMap(([field, change]) => {
      const nouns = names.get(field) || [field, field];
      // An expected rule that broke leads the batch already.
      const broken = (change.broken || []).filter((one) => !isTold(one)), some = (change.broken || []).length - broken.length;
      const each = {...change, broken: change.broken && broken, counts: {...change.counts, broken: change.counts.broken - some}};
      const more = (some, what) => each.counts[what] > some.length && h("li", {class: "soft"}, `and ${number(each.counts[what] - some.length)} more`);
      const block = (what, words, item) => each.counts[what] ? h("div", {class: "change"}, h("h3", {}, `${plural(each.counts[what], nouns)} ${words}`), each[what] ? item(each[what]) : h("p", {class: "soft"}, "Listed for later versions only.")) : null;
      return [
        block("broken", "broken", (some) => [some.map((one) => [h("p", {class: "rule"}, one.text, one.repeated ? "  (only because rows are repeated)" : ""), one.witness && one.witness.length ? rowsTable(one.witness, columnsOf(one), tableOf(batch.table)) : null]), h("ul", {}, more(some, "broken"))]),
        block("superseded", "became shorter", (some) => h("ul", {}, some.map((one) => h("li", {}, h("code", {}, one.text), " → ", h("code", {}, one.by))), more(some, "superseded"))),
        block("gained", "gained", (some) => h("ul", {}, some.map((one) => h("li", {}, h("code", {}, one.text))), more(some, "gained")))];
    }).filter(Boolean);
  }

  // Pages

  function overview() {
    const nulls = doc.nulls === "equal" ? "Two nulls count as equal." : "A null differs from everything.";
    const counts = doc.kinds.map((kind) => {
      const lists = [...doc.tables.flatMap((table) => table.lists), ...doc.lists].filter((each) => each.field === kind.field);
      const sum = lists.reduce((all, each) => all + each.total, 0);
      return lists.length ? h("div", {}, h("b", {}, number(sum)), h("span", {}, sum === 1 ? kind.nouns[0] : kind.nouns[1])) : null;
    });
    const rows = doc.tables.reduce((sum, table) => sum + table.rows, 0);
    return [h("h1", {}, doc.name), h("p", {class: "lead"}, `Version ${doc.version} of ${moment(doc.created)} UTC. ${nulls}`),
      h("div", {class: "facts"}, h("div", {}, h("b", {}, number(doc.tables.length)), h("span", {}, doc.tables.length === 1 ? "table" : "tables")), h("div", {}, h("b", {}, number(rows)), h("span", {}, rows === 1 ? "row" : "rows")), counts),
      expectations(null), diagram(), tablesTable(), history(null)];
  }
  function tablePage(table) {
    const shown = new Set();
    const take = (test) => table.lists.filter((each) => !shown.has(each) && each.entries.length && test(each.entries[0])).map((each) => { shown.add(each); return each; });
    const dependencies = take(isDependency), rulesFound = take(isRule);
    const sets = table.lists.filter((each) => !shown.has(each));
    const facts = [[table.rows, ROWS], [table.columns.length, COLUMNS], ...table.lists.map((each) => [each.total, each.nouns])];
    const pairs = sets.map((each) => plainList(table, each, capital(each.nouns[1]), null));
    return [h("h1", {}, table.name),
      h("p", {class: "grain"}, table.grain.columns ? [table.grain.columns.length ? ["One row per ", chips(table.grain.columns), table.grain.removal ? `, but for ${plural(table.grain.removal, ROWS)} too many` : null] : "At most one row", table.grain.columns.length ? h("span", {class: "soft"}, ` (${table.grain.reason})`) : null]
        : h("span", {class: "soft"}, `No grain: ${table.grain.reason}.`)),
      h("div", {class: "facts"}, facts.map(([count, nouns]) => h("div", {}, h("b", {}, number(count)), h("span", {}, count === 1 ? nouns[0] : nouns[1])))),
      table.duplicates ? h("div", {class: "note warned"}, h("p", {}, `${plural(table.duplicates, ROWS)} ${table.duplicates === 1 ? "repeats" : "repeat"} another one. The keys below would hold without them.`), table.duplicated.length ? rowsTable(table.duplicated, [], table) : null) : null,
      Object.entries(table.left_out).map(([nouns, why]) => h("div", {class: "note"}, `${capital(nouns)} were not searched for: ${why}.`)),
      expectations(table), nearRules(table), columnsTable(table), h("div", {class: "two"}, pairs), dependencies.map((each) => matrix(table, each)), rulesFound.map((each) => rules(table, each)),
      h("div", {class: "two"}, referencesOf(table)), lifetimes(table), history(table)];
  }
  function current() {
    const found = /^#\/table\/(.+)$/.exec(location.hash);
    try { return found ? decodeURIComponent(found[1]) : null; } catch { return null; }
  }
  function render() {
    filtered = [];
    lifeOf.known = null;
    const name = current(), table = name === null ? null : tableOf(name);
    const link = (href, words, side, on) => h("a", {href, "aria-current": on ? "page" : null}, h("span", {}, words), side && h("span", {}, side));
    nav.replaceChildren(link("#/", "Overview", null, name === null), h("h2", {}, "Tables"), ...doc.tables.map((each) => link(address(each.name), each.name, number(each.rows), each.name === name)));
    byId("profile").textContent = `${doc.name}, version ${doc.version}`;
    document.title = `${table ? `${table.name} · ` : ""}${doc.name} · Holdfast`;
    const page = name === null ? overview() : table ? tablePage(table) : [h("h1", {}, "No such table"), h("p", {class: "lead"}, "This version of the profile has no table of that name.")];
    const content = h("div", {});
    fill(content, {}, [page, h("footer", {}, doc.values ? null : "Made without values of the data. ", h("kbd", {}, "/"), " filters, ", h("kbd", {}, "↑"), " ", h("kbd", {}, "↓"), " move in a list, ", h("kbd", {}, "Enter"), " shows more, ", h("kbd", {}, "Esc"), " goes back.")]);
    main.replaceChildren(content);
    for (const update of filtered) update();
  }

  // Colours, keys and the address

  const themes = ["auto", "light", "dark"], button = byId("theme");
  let theme = "auto";
  try { theme = localStorage.getItem("holdfast-theme") || "auto"; } catch { /* a page from disk may have no storage */ }
  function colour(next) {
    theme = themes.includes(next) ? next : "auto";
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = {auto: "Auto", light: "Light", dark: "Dark"}[theme];
    button.setAttribute("aria-label", `Colours: ${theme}`);
    try { localStorage.setItem("holdfast-theme", theme); } catch { /* the same */ }
  }
  button.addEventListener("click", () => colour(themes[(themes.indexOf(theme) + 1) % themes.length]));
  colour(theme);

  let waiting = 0;
  filter.addEventListener("input", () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(() => { for (const update of filtered) update(); }); });
  document.addEventListener("keydown", (event) => {
    const typing = ["INPUT", "TEXTAREA", "SELECT"].includes(event.target.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey && !dialog.open) { event.preventDefault(); filter.focus(); filter.select(); }
    else if (event.key === "Escape" && event.target === filter) {
      if (filter.value) { filter.value = ""; filter.dispatchEvent(new Event("input")); } else main.focus();
      event.preventDefault();
    } else if (event.key === "ArrowDown" && event.target === filter) {
      const first = main.querySelector(".list");
      if (first) { event.preventDefault(); first.focus(); }
    } else if (["ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight"].includes(event.key) && event.target.closest("nav")) {
      const links = [...nav.querySelectorAll("a")], at = links.indexOf(event.target) + (["ArrowDown", "ArrowRight"].includes(event.key) ? 1 : -1);
      if (links[at]) { event.preventDefault(); links[at].focus(); }
    }
  });
  addEventListener("hashchange", () => { if (dialog.open) dialog.close(); render(); scrollTo(0, 0); main.focus({preventScroll: true}); });
  render();

  // Served: ask for a newer version now and then

  if (live) {
    const status = byId("status");
    const say = (words, on) => { status.hidden = false; status.textContent = words; status.className = `status ${on ? "on" : "off"}`; };
    say("live", true);
    const ask = async () => {
      try {
        const answer = await fetch("api/version", {cache: "no-store"});
        const told = await answer.json();
        if (!answer.ok) throw new Error(told.error || answer.statusText);
        if (told.version !== doc.version && !dialog.open) {  // who reads a detail reads on
          const next = await fetch("api/document", {cache: "no-store"});
          const form = await next.json();
          if (!next.ok) throw new Error(form.error || next.statusText);
          const at = [scrollX, scrollY];
          doc = form;
          render();
          scrollTo(...at);
        }
        say("live", true);
      } catch (error) { say(error instanceof TypeError ? "no answer" : "cannot be read", false); status.title = String(error.message || error); }
      setTimeout(ask, document.hidden ? 10000 : 2000);
    };
    setTimeout(ask, 2000);
  }
})();
