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
  const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
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

  // A list of any length, of which only the visible rows exist

  let listCount = 0;
  function list({label, items, height = 36, most = 11, draw, open, extra = "", scroller = null}) {
    const id = `list-${++listCount}`;
    const space = h("div", {class: "space"});
    const element = h("div", {class: `list ${extra}`, tabindex: "0", role: "listbox", "aria-label": label, id}, space);
    const view = scroller || element;
    let shown = items, active = 0, drawn = new Map(), waiting = false;
    const top = () => scroller ? Math.max(0, scroller.scrollTop) : element.scrollTop;
    function row(at) {
      const made = h("div", {class: "row", role: "option", id: `${id}-${at}`, "aria-setsize": shown.length, "aria-posinset": at + 1,
        style: {height: `${height}px`, transform: `translateY(${at * height}px)`},
        onclick: () => { active = at; mark(); if (open) open(shown[at]); }});
      draw(made, shown[at], at);
      return made;
    }
    function paint() {
      waiting = false;
      const first = Math.max(0, Math.floor(top() / height) - 4);
      const last = Math.min(shown.length, Math.ceil((top() + (view.clientHeight || most * height)) / height) + 4);
      for (const [at, made] of drawn) if (at < first || at >= last) { made.remove(); drawn.delete(at); }
      for (let at = first; at < last; at++) if (!drawn.has(at)) { const made = row(at); drawn.set(at, made); space.append(made); }
      mark();
    }
    function mark() {
      for (const [at, made] of drawn) { made.classList.toggle("active", at === active); made.setAttribute("aria-selected", at === active); }
      if (drawn.has(active)) element.setAttribute("aria-activedescendant", `${id}-${active}`);
      else element.removeAttribute("aria-activedescendant");
    }
    function go(to) {
      active = Math.min(Math.max(0, to), shown.length - 1);
      const start = active * height, room = (view.clientHeight || most * height) - (scroller ? 160 : 0);
      if (start < top()) view.scrollTop = start;
      else if (start + height > top() + room) view.scrollTop = start + height - room;
      paint();
    }
    function set(next) {
      shown = next; active = 0;
      for (const made of drawn.values()) made.remove();
      drawn = new Map();
      view.scrollTop = 0;
      space.style.height = `${shown.length * height}px`;
      if (!scroller) element.style.height = `${Math.min(shown.length, most) * height}px`;
      paint();
    }
    view.addEventListener("scroll", () => { if (!waiting) { waiting = true; requestAnimationFrame(paint); } }, {passive: true});
    element.addEventListener("keydown", (event) => {
      const page = Math.max(1, Math.floor((view.clientHeight || most * height) / height) - 1);
      const moves = {ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: shown.length - 1};
      if (event.key in moves && shown.length) { event.preventDefault(); go(moves[event.key]); }
      else if ((event.key === "Enter" || event.key === " ") && open && shown.length) { event.preventDefault(); open(shown[active]); }
    });
    set(items);
    requestAnimationFrame(paint);
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
  function rowsTable(rows, marked, table) {
    const known = (table ? table.columns : []).map((column) => column.name);
    const names = [...new Set([...known, ...rows.flatMap((row) => Object.keys(row))])].filter((name) => rows.some((row) => name in row));
    const differ = (name) => rows.length > 1 && rows.some((row) => JSON.stringify(row[name]) !== JSON.stringify(rows[0][name]));
    const first = [...new Set(marked)].filter((name) => names.includes(name));
    const order = [...new Set([...first, ...names.filter(differ), ...names])];
    const mark = (name) => first.includes(name) ? (differ(name) ? "mark differ" : "mark") : null;
    return h("div", {class: "witness", tabindex: "0", role: "region", "aria-label": "Rows"}, h("table", {},
      h("thead", {}, h("tr", {}, order.map((name) => h("th", {class: mark(name), scope: "col"}, name)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, order.map((name) => h("td", {class: mark(name), title: typeof row[name] === "string" ? row[name] : null}, name in row ? cell(row[name]) : "")))))));
  }
  function detail(table, field, entry) {
    const life = lifeOf(table.name, field, entry.text);
    const known = doc.kinds.some((kind) => kind.field === field);
    const plotted = entry.order && plot(table, entry.order, 560, 300);
    show(entry.sentence || entry.text,
      entry.sentence && h("div", {class: "rule"}, entry.text),
      entry.error ? h("p", {}, `Violated by ${share(entry.error)} of the ${entry.within_a_row ? "rows" : "pairs of rows"}.`) : known && h("p", {class: "soft"}, `Holds ${held(life)}.`),
      entry.rank && h("p", {class: "soft"}, `Matters ${entry.rank.score.toFixed(2)} of 1${entry.rank.reasons.length ? `: ${entry.rank.reasons.join(", ")}` : ""}.${entry.rank.stability ? ` ${capital(entry.rank.stability)}.` : ""}`,
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
    const view = h("div", {class: "matrix", style: {"--lhs": `${Math.min(420, Math.max(190, longest * 7.9 + 30))}px`}});
    view.append(h("div", {class: "top"}, h("div", {class: "corner"}, "These columns determine …"),
      names.map((column) => h("div", {class: "name", title: column}, h("span", {}, column)))));
    const lines = list({label: `Dependencies of ${table.name}`, items: [], height: 36, scroller: view,
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
      // Only as high as what is in it, so that the page does not jump.
      view.style.height = left.length ? `${Math.min(560, view.firstChild.offsetHeight + left.length * 36 + (view.scrollWidth > view.clientWidth ? 14 : 0))}px` : "auto";
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
    return scale === "number" ? (Math.abs(value) >= 1e6 ? value.toPrecision(4).replace(/\.?0+(e|$)/, "$1") : String(+value.toPrecision(6))) : dateText(value, scale);
  }
  function plot(table, order, width, height) {
    const points = table.points;
    if (!points || !points.columns[order.lhs] || !points.columns[order.rhs]) return null;
    const xs = points.columns[order.lhs], ys = points.columns[order.rhs];
    const pairs = xs.map((x, at) => [x, ys[at]]).filter(([x, y]) => x !== null && y !== null);
    if (!pairs.length) return null;
    const bounds = (at) => pairs.reduce(([low, high], pair) => [Math.min(low, pair[at]), Math.max(high, pair[at])], [Infinity, -Infinity]);
    const [x0, x1] = bounds(0), [y0, y1] = bounds(1);
    const left = 8, bottom = 32, top = 18, right = 8;
    const place = (value, low, high, size) => high > low ? (value - low) / (high - low) * size : size / 2;
    const sx = (x) => left + 4 + place(x, x0, x1, width - left - right - 8);
    const sy = (y) => height - bottom - 4 - place(y, y0, y1, height - top - bottom - 8);
    const scales = [points.scales[order.lhs], points.scales[order.rhs]];
    const dots = new Map();  // rows that lie on one another are one larger dot
    for (const [x, y] of pairs) { const at = `${sx(x).toFixed(0)} ${sy(y).toFixed(0)}`; dots.set(at, (dots.get(at) || 0) + 1); }
    return s("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${order.rhs} over ${order.lhs}: ${axisText(y0, scales[1])} to ${axisText(y1, scales[1])} over ${axisText(x0, scales[0])} to ${axisText(x1, scales[0])}`},
      s("path", {class: "axis", d: `M${left} ${top}V${height - bottom}H${width - right}`}),
      [...dots].map(([at, count]) => { const [cx, cy] = at.split(" "); return s("circle", {class: "dot", cx, cy, r: Math.min(7, 1.4 + 0.6 * Math.sqrt(count)).toFixed(1)}); }),
      s("text", {x: left, y: 11}, `↑ ${clip(order.rhs, 16)}  ${axisText(y0, scales[1])} – ${axisText(y1, scales[1])}`),
      s("text", {x: left, y: height - 18}, axisText(x0, scales[0])),
      s("text", {x: width - right, y: height - 18, "text-anchor": "end"}, axisText(x1, scales[0])),
      s("text", {x: width / 2, y: height - 4, "text-anchor": "middle"}, `${clip(order.lhs, 30)} →`));
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
    const found = references();
    const all = found ? found.entries : [];
    const likely = all.filter((each) => each.score >= 0.5);
    const weak = kept.get("weak") ?? false;
    const edges = weak ? all : likely;
    const made = section("Tables", edges.length ? "An arrow leads from a foreign key to what it refers to." : null);
    made.count.textContent = plural(likely.length, ["likely foreign key", "likely foreign keys"]);
    if (all.length > likely.length) {
      made.tools.append(h("button", {type: "button", class: "quiet", "aria-pressed": weak, onclick: () => { kept.set("weak", !weak); render(); }}, `Unlikely ones (${number(all.length - likely.length)})`));
    }
    if (!likely.length && !weak) {
      made.element.append(h("div", {class: "panel empty"}, doc.tables.length < 2 ? "There is one table, so nothing refers to another."
        : found ? "No column looks like a foreign key." : "No foreign keys are known."));
      return made.element;
    }
    const WIDE = 186, LINE = 19, HEAD = 44, GAP_X = 92, GAP_Y = 26;
    const nodes = new Map(doc.tables.map((table) => {
      const key = table.grain.columns || [];
      const names = [...new Set([...key, ...edges.flatMap((each) => [each.dependent, each.referenced].filter((side) => side.table === table.name).flatMap((side) => side.columns))])];
      const order = table.columns.map((column) => column.name);
      const lines = names.sort((one, two) => order.indexOf(one) - order.indexOf(two)).slice(0, 9);
      return [table.name, {table, lines, key, height: HEAD + lines.length * LINE + 8, layer: 0}];
    }));
    // A table stands right of all that refer to it; a circle is cut where it is closed.
    const from = new Map();
    for (const {dependent, referenced} of likely.length ? likely : edges) {
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
    const near = (node) => edges.flatMap((each) => each.dependent.table === node.table.name ? [each.referenced.table] : each.referenced.table === node.table.name ? [each.dependent.table] : []);
    for (let round = 0; round < 4; round++) {
      for (const layer of layers) {
        layer.forEach((node, at) => { node.rank = node.rank ?? at; });
        for (const node of layer) {
          const ranks = near(node).map((name) => nodes.get(name).rank ?? 0);
          node.mean = ranks.length ? ranks.reduce((sum, rank) => sum + rank, 0) / ranks.length : 99;
        }
        layer.sort((one, two) => one.mean - two.mean || (one.table.name < two.table.name ? -1 : 1));
        layer.forEach((node, at) => { node.rank = at; });
      }
    }
    const heights = layers.map((layer) => layer.reduce((sum, node) => sum + node.height + GAP_Y, -GAP_Y));
    const tall = Math.max(...heights);
    layers.forEach((layer, column) => {
      let y = 4 + (tall - heights[column]) / 2;
      for (const node of layer) { node.x = 4 + column * (WIDE + GAP_X); node.y = y; y += node.height + GAP_Y; }
    });
    const width = layers.length * (WIDE + GAP_X) - GAP_X + 8 + (edges.some((each) => nodes.get(each.dependent.table).x === nodes.get(each.referenced.table).x) ? 40 : 0);
    const lineAt = (node, column) => node.y + HEAD + Math.max(0, node.lines.indexOf(column)) * LINE + LINE / 2;
    const paths = edges.map((each) => {
      const start = nodes.get(each.dependent.table), to = nodes.get(each.referenced.table);
      const y1 = lineAt(start, each.dependent.columns[0]), y2 = lineAt(to, each.referenced.columns[0]);
      // To the right, back to the left, or round the right side to a table above or below.
      const way = Math.sign(to.x - start.x), out = way < 0 ? -1 : 1, back = way === 0 ? 1 : -out;
      const x1 = start.x + (out > 0 ? WIDE : 0), x2 = to.x + (back > 0 ? WIDE : 0);
      const bend = Math.max(40, Math.abs(x2 - x1) / 2);
      return s("path", {class: `edge ${each.score >= 0.5 ? "" : "weak"}`, "marker-end": "url(#tip)",
        d: `M${x1} ${y1}C${x1 + out * bend} ${y1} ${x2 + back * bend} ${y2} ${x2 + back * 3} ${y2}`}, s("title", {}, `${each.text}, score ${each.score.toFixed(2)}`));
    });
    const boxes = [...nodes.values()].map((node) => s("a", {href: address(node.table.name), "aria-label": `${node.table.name}, ${plural(node.table.rows, ROWS)}`},
      s("rect", {class: "box", x: node.x, y: node.y, width: WIDE, height: node.height, rx: 8}),
      s("path", {class: "cap", d: `M${node.x + .5} ${node.y + HEAD - 8}v-${HEAD - 16}a8 8 0 0 1 8 -7.5h${WIDE - 17}a8 8 0 0 1 8 7.500v${HEAD - 16}z`}),
      s("text", {class: "name", x: node.x + 12, y: node.y + 17}, clip(node.table.name, 24)),
      s("text", {class: "quiet-text", x: node.x + 12, y: node.y + 31}, plural(node.table.rows, ROWS)),
      node.lines.map((column, at) => [
        node.key.includes(column) && s("circle", {class: "keymark", cx: node.x + 14, cy: node.y + HEAD + at * LINE + LINE / 2, r: 3}),
        s("text", {x: node.x + 24, y: node.y + HEAD + at * LINE + 14}, clip(column, 21))])));
    made.element.append(h("div", {class: "panel"},
      h("div", {class: "diagram", tabindex: "0", role: "group", "aria-label": "Diagram of tables"}, s("svg", {width, height: tall + 8, viewBox: `0 0 ${width} ${tall + 8}`},
        s("defs", {}, s("marker", {id: "tip", viewBox: "0 0 8 8", refX: 6, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse"}, s("path", {class: "tip", d: "M0 0L8 4L0 8z"}))),
        paths, boxes)),
      h("div", {class: "legend"}, h("span", {}, s("svg", {width: 8, height: 8}, s("circle", {class: "keymark", cx: 4, cy: 4, r: 3})), "what a row is told by"), weak && h("span", {}, "dashed: unlikely"))));
    return made.element;
  }

  function tablesTable() {
    const made = section("What a row is", null);
    made.count.textContent = plural(doc.tables.length, ["table", "tables"]);
    const kinds = doc.tables.some((table) => table.lists.length) ? [...new Map(doc.tables.flatMap((table) => table.lists.map((each) => [each.field, each]))).values()].filter((each) => doc.kinds.some((kind) => kind.field === each.field)) : [];
    const body = h("tbody");
    const update = () => {
      const wanted = asked();
      body.replaceChildren(...doc.tables.filter((table) => wanted.every((word) => `${table.name} ${table.columns.map((each) => each.name).join(" ")}`.toLowerCase().includes(word))).map((table) =>
        h("tr", {class: "link", onclick: () => { location.hash = address(table.name); }},
          h("td", {}, h("a", {href: address(table.name)}, table.name)),
          h("td", {class: "num"}, number(table.rows)), h("td", {class: "num"}, number(table.columns.length)),
          h("td", {}, table.grain.columns ? chips(table.grain.columns) : h("span", {class: "soft"}, table.grain.reason)),
          kinds.map((kind) => { const mine = table.lists.find((each) => each.field === kind.field); return h("td", {class: "num"}, mine ? number(mine.total) : "–"); }))));
    };
    filtered.push(update);
    update();
    made.element.append(h("div", {class: "panel scroll"}, h("table", {}, h("thead", {}, h("tr", {}, h("th", {scope: "col"}, "table"), h("th", {scope: "col", class: "num"}, "rows"), h("th", {scope: "col", class: "num"}, "columns"), h("th", {scope: "col"}, "one row per"), kinds.map((kind) => h("th", {scope: "col", class: "num"}, kind.nouns[1])))), body)));
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
        h("span", {class: "text", title: each.text}, each.name ? each.name : h("code", {}, each.text)));
      if (far(each)) row.append(h("span", {class: "side", title: far(each)}, far(each)));
    }}, () => mine, () => mine.length, ["expectation", "expectations"]);
    return made.element;
  }

  // Columns of a table

  function columnsTable(table) {
    const made = section("Columns", null);
    made.count.textContent = number(table.columns.length);
    const foreign = references();
    const keys = table.duplicates ? [] : keysOf(table), dependencies = listOf(table, isDependency).flatMap((each) => each.entries).filter((entry) => !entry.error);
    const roles = (name) => [
      keys.some((key) => key.columns.length === 1 && key.columns[0] === name) ? h("span", {class: "tag"}, "key")
        : keys.some((key) => key.columns.includes(name)) && h("span", {class: "tag"}, "in a key"),
      (foreign ? foreign.entries : []).filter((each) => each.score >= 0.5 && each.dependent.table === table.name && each.dependent.columns.includes(name))
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
    made.element.append(h("div", {class: `panel scroll ${table.columns.length > 16 ? "tall" : ""}`, tabindex: table.columns.length > 16 ? "0" : null, role: "region", "aria-label": `Columns of ${table.name}`}, h("table", {}, h("thead", {}, h("tr", {}, h("th", {scope: "col"}, "column"), h("th", {scope: "col"}, "type"), extra.map((name) => h("th", {scope: "col", class: "num"}, name)), h("th", {scope: "col"}, ""))), body)));
    return made.element;
  }
  const isEnd = (name) => name === "minimum" || name === "maximum";
  const fact = (name, facts) => {
    const value = facts[name];
    if (value === null || value === undefined) return "";
    if (isEnd(name)) { const shown = cell(value); return h("span", {title: shown}, shown); }  // a value of the data, as it is
    return typeof value === "number" ? `${name === "distinct" && facts.estimated ? "about " : ""}${number(value)}` : cell(value);
  };

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
    const made = section("Lifetimes", "From which version to which each constraint held; those that changed come first.");
    if (doc.versions.length < 2) {
      made.element.append(h("div", {class: "panel empty"}, "There is one version so far. When a batch is applied, this shows what it broke and what it brought."));
      return made.element;
    }
    const first = doc.versions[0].version, last = doc.versions[doc.versions.length - 1].version;
    const name = `lives ${table.name}`;
    let field = kept.get(name) ?? null;
    const lists = table.lists.filter((each) => doc.kinds.some((kind) => kind.field === each.field));
    const told = doc.lives[table.name] || [];
    const names = new Set(told.map((life) => `${life.field}\n${life.text}`));
    const calm = lists.flatMap((each) => each.entries.filter((entry) => !entry.error && !names.has(`${each.field}\n${entry.text}`)).map((entry) => ({...lifeOf(table.name, each.field, entry.text), search: entry.sentence})));
    const all = [...told, ...calm];
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
        end !== null && h("span", {class: `end ${how === "broken" ? "" : "soft-end"}`, style: {left: at(end)}})])));
      row.setAttribute("aria-label", `${life.text}: ${life.spans.map(([start, end, how]) => end === null ? `since version ${start}` : `version ${start} to ${end}, ${how}`).join("; ")}`);
    }}, () => field ? all.filter((life) => life.field === field) : all, () => field ? all.filter((life) => life.field === field).length : all.length, ["constraint", "constraints"]);
    const panel = made.element.querySelector(".panel");
    panel.prepend(h("div", {class: "scale", "aria-hidden": "true"}, h("span", {}, `version ${first}`), h("span", {}, `version ${last}`)));
    panel.append(h("div", {class: "legend"}, h("span", {}, h("span", {class: "fill"}, s("svg", {width: 18, height: 8}, s("rect", {class: "fill-accent", width: 18, height: 6, y: 1, rx: 3}))), "held"),
      h("span", {}, s("svg", {width: 4, height: 12}, s("rect", {class: "fill-bad", width: 3, height: 12, rx: 1})), "broken"),
      h("span", {}, "grey end: a shorter one was enough")));
    return made.element;
  }

  // Batches

  const changed = (batch, what) => Object.values(batch.changes).reduce((sum, each) => sum + (each.counts[what] || 0), 0);
  const rowsChanged = (batch) => [["+", batch.inserted], ["−", batch.deleted], ["~", batch.updated]].filter(([, count]) => count).map(([sign, count]) => `${sign}${number(count)}`).join(" ") || "0";

  function chart(title, data, bars) {
    const width = 480, height = 84, gap = data.length > 60 ? 0.5 : 2;
    const size = Math.min(20, width / Math.max(1, data.length));
    return h("div", {class: "panel chart"}, h("h3", {}, title), s("svg", {viewBox: `0 0 ${width} ${height + 8}`, preserveAspectRatio: "none", role: "img", "aria-label": title},
      data.map((each, at) => bars(each, at * size + gap / 2, Math.max(1, size - gap), height))));
  }
  function history(table) {
    const made = section("Batches", null);
    const events = doc.versions.flatMap((version) => version.batches.length
      ? version.batches.filter((batch) => !table || batch.table === table.name).map((batch) => ({version, batch}))
      : !table || version.numbers[table.name] ? [{version, batch: null}] : []);
    for (const each of events) each.search = `version ${each.version.version} ${each.batch ? `${each.batch.table} ${each.batch.batch_id || ""} ${Object.values(each.batch.changes).flatMap((one) => (one.broken || []).map((broken) => broken.text)).join(" ")}` : each.version.what}`;
    const some = events.filter((each) => each.batch).slice(-120);
    if (some.length) {
      const slowest = Math.max(...some.map(({version}) => total(version)), 1e-9);
      const most = Math.max(...some.map(({batch}) => Math.max(changed(batch, "gained"), changed(batch, "broken"))), 1);
      made.element.append(h("div", {class: "charts"},
        chart(`Time of each batch, at most ${seconds(slowest)}`, some, ({version}, x, width, height) =>
          s("rect", {class: "fill-accent", x, y: height - total(version) / slowest * (height - 2), width, height: Math.max(1, total(version) / slowest * (height - 2))}, s("title", {}, `version ${version.version}: ${seconds(total(version))}`))),
        chart(`Constraints gained and broken, at most ${number(most)}`, some, ({version, batch}, x, width, height) => {
          const gained = changed(batch, "gained") / most * (height / 2 - 2), broken = changed(batch, "broken") / most * (height / 2 - 2);
          return [s("rect", {class: "fill-good", x, width, y: height / 2 - gained - .5, height: gained}, s("title", {}, `version ${version.version}: ${changed(batch, "gained")} gained`)),
            s("rect", {class: "fill-bad", x, width, y: height / 2 + .5, height: broken}, s("title", {}, `version ${version.version}: ${changed(batch, "broken")} broken`)),
            s("path", {class: "axis", d: `M${x - 2} ${height / 2}h${width + 4}`})];
        })));
    }
    events.reverse();
    filteredList(made, {label: "Batches", extra: "batch", open: batchDetail, most: 10, draw: (row, {version, batch}) => {
      row.append(h("span", {class: "v"}, version.version), h("span", {class: "when"}, moment(version.created)));
      if (!batch) { row.append(h("span", {class: "text soft"}, version.what)); return; }
      const broken = changed(batch, "broken"), gained = changed(batch, "gained");
      row.append(h("span", {class: "text"}, table ? null : `${batch.table} `, h("span", {class: "soft"}, batch.batch_id || ""), batch.quarantined && [" ", h("span", {class: "warn left-out"}, `${plural(batch.quarantined.rows, ROWS)} quarantined`)]), h("span", {class: "n"}, rowsChanged(batch)),
        h("span", {class: `n ${broken ? "bad" : "soft"}`}, broken ? `${number(broken)} broken` : "–"), h("span", {class: `n hide ${gained ? "good" : "soft"}`}, gained ? `${number(gained)} gained` : "–"),
        h("span", {class: "n soft"}, seconds(total(version))));
    }}, () => events, () => events.length, ["batch", "batches"]);
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
    const names = new Map(doc.kinds.map((kind) => [kind.field, kind.nouns]));
    const spent = total(version), stages = Object.entries(version.seconds).filter(([, each]) => each > 0);
    const parts = Object.entries(batch.changes).flatMap(([field, each]) => {
      const nouns = names.get(field) || [field, field];
      const more = (some, what) => each.counts[what] > some.length && h("li", {class: "soft"}, `and ${number(each.counts[what] - some.length)} more`);
      const block = (what, words, tone, item) => each.counts[what] ? h("div", {class: "change"}, h("h3", {class: tone}, `${plural(each.counts[what], nouns)} ${words}`), each[what] ? item(each[what]) : h("p", {class: "soft"}, "Listed for later versions only.")) : null;
      return [
        block("broken", "broken", "bad", (some) => [some.map((one) => [h("p", {class: "rule"}, one.text, one.repeated ? "  (only because rows are repeated)" : ""), one.witness && one.witness.length ? rowsTable(one.witness, columnsOf(one), tableOf(batch.table)) : null]), h("ul", {}, more(some, "broken"))]),
        block("superseded", "became shorter", "", (some) => h("ul", {}, some.map((one) => h("li", {}, h("code", {}, one.text), " → ", h("code", {}, one.by))), more(some, "superseded"))),
        block("gained", "gained", "good", (some) => h("ul", {}, some.map((one) => h("li", {}, h("code", {}, one.text))), more(some, "gained")))];
    }).filter(Boolean);
    show(`${batch.table}, version ${version.version}${batch.batch_id ? `: ${batch.batch_id}` : ""}`,
      h("p", {class: "soft"}, `${moment(version.created)} UTC · ${number(batch.inserted)} inserted, ${number(batch.deleted)} deleted, ${number(batch.updated)} updated${batch.unchanged ? `, ${number(batch.unchanged)} unchanged` : ""}${batch.quarantined ? `, ${number(batch.quarantined.rows)} quarantined` : ""} · ${plural(batch.rows, ROWS)} then · ${seconds(spent)}${version.batches.length > 1 ? ` for ${version.batches.length} tables together` : ""}`),
      spent > 0 && h("div", {}, h("div", {class: "stages", role: "img", "aria-label": "Time by stage"}, stages.map(([name, each]) => h("i", {title: `${name} ${seconds(each)}`, style: {width: `${each / spent * 100}%`}}))), h("p", {class: "soft"}, stages.map(([name, each]) => `${name} ${seconds(each)}`).join(", "))),
      leftOut(batch.quarantined),
      batch.duplicated.length ? [h("h3", {class: "bad"}, "A row that is there twice"), rowsTable(batch.duplicated, [], tableOf(batch.table))] : null,
      parts.length ? parts : h("p", {}, "Nothing gained, nothing broken."));
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
      table.duplicates ? h("div", {class: "note bad"}, h("p", {}, `${plural(table.duplicates, ROWS)} ${table.duplicates === 1 ? "repeats" : "repeat"} another one. The keys below would hold without them.`), table.duplicated.length ? rowsTable(table.duplicated, [], table) : null) : null,
      Object.entries(table.left_out).map(([nouns, why]) => h("div", {class: "note"}, `${capital(nouns)} were not searched for: ${why}.`)),
      expectations(table), columnsTable(table), h("div", {class: "two"}, pairs), dependencies.map((each) => matrix(table, each)), rulesFound.map((each) => rules(table, each)),
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
