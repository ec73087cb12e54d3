"use strict";
(() => {
  const element = (id) => document.getElementById(id);
  const { words, rows, language } = JSON.parse(element("data").textContent);
  const say = (name, values = {}) => words[name].replace(/\{(\w+)\}/g, (_, one) => values[one]);
  const number = (value) => value.toLocaleString("en");
  const time = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ");
  // Whatever comes from a page is put in as text, never as HTML.
  const make = (name, kind, ...inside) => {
    const made = document.createElement(name);
    if (kind) made.className = kind;
    made.append(...inside);
    return made;
  };

  // Long lists: the first ones, until all are asked for.
  const shorten = (list, button, many) => {
    if (!list) return () => {};
    const others = [...list.children].slice(many);
    const hide = (hidden) => {
      others.forEach((one) => { one.hidden = hidden; });
      button.hidden = !hidden || !others.length;
    };
    button.addEventListener("click", () => hide(false));
    hide(true);
    return () => hide(false);
  };
  shorten(element("flow-list"), element("more-flows"), 8);
  const allGroups = shorten(element("group-list"), element("more-groups"), 10);

  // A table as a file: what a spreadsheet would run is made a text by an apostrophe, as by --spreadsheet.
  const cell = (value) => {
    const text = String(value);
    const runs = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(text) && !/^[+-]?\d+([.,]\d+)*([eE][+-]?\d+)?$/.test(text);
    const safe = runs ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const saved = (name, lines) => {
    const text = `\ufeff${lines.map((line) => `${line.map(cell).join(",")}\r\n`).join("")}`; // by its mark it is known to be UTF-8
    const made = make("a");
    made.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    made.download = `neardup-${name}.csv`;
    made.click();
    setTimeout(() => URL.revokeObjectURL(made.href), 10000);
  };
  const said = (one) => (one ? one.dataset.value ?? one.textContent.trim().replace(/\s+/g, " ") : "");
  const ofTable = (table) => [...table.rows].map((row) => [...row.cells].map(said));
  const ofGroups = (list) => [
    ["similar_id", say("kind"), say("copies.similarity"), say("copies.first_seen"), say("csv.title"), "URL"],
    ...[...list.children].flatMap((group) => [...group.querySelectorAll("li:not(.note)")].map((line) => {
      const url = line.querySelector(".url");
      const names = [...line.querySelectorAll("bdi")].map(said);
      const parts = [".kind", ".figure", "time"].map((one) => said(line.querySelector(one)));
      return [group.id.slice(6), ...parts, url ? names[0] : "", url ? names[1] : names[0]];
    })),
  ];
  const tables = { "group-list": ofGroups };
  document.querySelectorAll("button.csv").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", () => {
      const id = button.dataset.table;
      const name = { "group-list": "groups", table: "copies" }[id] || id.replace("-table", "");
      saved(name, (tables[id] || ofTable)(element(id)));
    });
  });

  // A page by its name; of a long URL the browser cuts out the middle.
  const address = (url) => {
    const letters = [...url];
    if (letters.length <= 28) return make("bdi", "", url);
    return make("bdi", "long", make("span", "head", letters.slice(0, -12).join("")), letters.slice(-12).join(""));
  };
  const named = ([title, url, link]) => {
    const name = make(link ? "a" : "span", "", title ? make("bdi", "", title) : address(url));
    if (link) {
      name.href = url;
      name.title = url;
      name.rel = "noreferrer noopener";
    }
    if (!title) return [name];
    const below = make("span", "url", address(url));
    below.title = url;
    return [name, below];
  };

  // Pairs: one at a time; behind those of the page itself the one that was last chosen in the table.
  const [SEEN, KIND, SIMILARITY, COPY, ORIGINAL, PLACE, GROUP, CONTAINMENT, SIDES] = [0, 1, 2, 3, 7, 11, 12, 13, 14]; // COPY, ORIGINAL and behind: title, URL, whether it is a link, site
  const choice = element("pair");
  const showPair = (at) => {
    const pairs = [...element("pair-list").children];
    choice.selectedIndex = at;
    pairs.forEach((pair, place) => { pair.hidden = place !== at; });
    element("previous").disabled = at === 0;
    element("next").disabled = at === pairs.length - 1;
  };
  const marked = ([letters, hidden, isCut, parts]) => {
    const text = make("div", "text", ...parts.map((part) => (typeof part === "string" ? part : make("mark", "", part[0]))), isCut ? "…" : "");
    text.dir = "auto";
    text.tabIndex = 0;
    const note = say(hidden ? "text.cut_more" : "text.cut", { letters: number(letters), hidden: number(hidden) });
    return isCut ? [text, make("p", "note", note)] : [text];
  };
  const side = (row, first, when, seen, text) => make(
    "section", "side",
    make("h4", "", `${say(when)} `, make("time", "", time(seen))),
    make("p", "name", ...named(row.slice(first, first + 3))),
    ...(text ? marked(text) : [make("p", "note", say("pair.no_text"))]),
  );
  const article = (row) => {
    const [seen, shared, ...texts] = row[SIDES];
    const likeness = say("pair.likeness", { similarity: row[SIMILARITY].toFixed(2), containment: row[CONTAINMENT].toFixed(2) });
    const made = make(
      "article", "pair",
      make("h3", "", make("span", `kind ${row[KIND]}`, say(`kind.${row[KIND]}`)), ` ${say("pair.copy")}: ${likeness}`),
      make("div", "sides", side(row, ORIGINAL, "pair.first", seen, texts[0]), side(row, COPY, "pair.later", row[SEEN], texts[1])),
    );
    if (!texts.length && shared?.length) {
      made.append(make("p", "note", say("pair.both_say")), make("ul", "shared", ...shared.map((one) => make("li", "", make("mark", "", make("bdi", "", one))))));
    } else if (!texts.length) made.append(make("p", "note", say(shared ? "pair.nothing" : "pair.left_out")));
    made.id = "pair-chosen";
    return made;
  };
  const compare = (row) => {
    element("pair-chosen")?.remove();
    element("pair-list").append(article(row));
    const chosen = make("option", "", `${say("pair.chosen")} · ${row[COPY] || row[COPY + 1]}`.slice(0, 80));
    const last = element("pair-list").children.length - 1;
    if (choice.options.length > last) choice.options[last].remove();
    choice.append(chosen);
    showPair(last);
    element("pairs").scrollIntoView();
    choice.focus({ preventScroll: true });
  };
  if (choice) {
    choice.addEventListener("change", () => showPair(choice.selectedIndex));
    element("previous").addEventListener("click", () => showPair(choice.selectedIndex - 1));
    element("next").addEventListener("click", () => showPair(choice.selectedIndex + 1));
    element("switch").hidden = false;
    showPair(0);
  }

  // Links within: to a group, which is unfolded, and to a pair, which is shown.
  const follow = () => {
    const target = element(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    if (target.classList.contains("group")) {
      allGroups();
      target.open = true;
    } else if (target.classList.contains("pair")) showPair([...target.parentNode.children].indexOf(target));
    else return;
    target.scrollIntoView();
  };
  addEventListener("hashchange", follow);
  follow();

  // The table of copies.
  if (!rows.length) return;
  const LENGTH = 50;
  const table = element("table");
  const folded = rows.map((row) => `${row.slice(0, PLACE).filter((one) => typeof one === "string").join("\n")}\n${say(`kind.${row[KIND]}`)}`.toLowerCase());
  const state = { column: SEEN, down: true, page: 0, found: rows.map((_, at) => at) };

  const page = (row, first) => make("td", "", ...(row[first + 3] ? named(row.slice(first, first + 3)) : [make("span", "note", say("copies.gone"))]));
  const link = (row) => {
    if (!row[SIDES].length && row[PLACE] < 0 && !row[GROUP]) return [];
    const isPair = row[PLACE] >= 0 || row[SIDES].length;
    const made = make("a", "", say(isPair ? "copies.compare" : "copies.group"));
    made.href = row[PLACE] >= 0 ? `#pair-${row[PLACE]}` : isPair ? "#pairs" : `#group-${row[GROUP]}`;
    made.addEventListener("click", (event) => {
      if (row[PLACE] < 0 && isPair) {
        event.preventDefault();
        compare(row);
      } else if (location.hash === made.hash) follow();
    });
    return [made];
  };
  const line = (row) => {
    const head = make("th", "", make("time", "", time(row[SEEN])));
    head.scope = "row";
    const original = page(row, ORIGINAL);
    original.dataset.of = say("copies.of");
    const sites = [COPY, ORIGINAL].map((first) => make("td", "", make("bdi", "", row[first + 3])));
    return make(
      "tr", "", head,
      make("td", "", make("span", `kind ${row[KIND]}`, say(`kind.${row[KIND]}`))),
      make("td", "", row[SIMILARITY].toFixed(2)),
      page(row, COPY), sites[0], original, sites[1], make("td", "", ...link(row)),
    );
  };
  const value = (row) => row[state.column] || (state.column === COPY || state.column === ORIGINAL ? row[state.column + 1] : row[state.column]);
  const show = () => {
    const pages = Math.max(1, Math.ceil(state.found.length / LENGTH));
    state.page = Math.min(state.page, pages - 1);
    const first = state.page * LENGTH;
    const shown = state.found.slice(first, first + LENGTH);
    table.tBodies[0].replaceChildren(...shown.map((at) => line(rows[at])));
    element("found").textContent = say("copies.found", { found: number(state.found.length), all: number(rows.length) });
    element("where").textContent = say("copies.where", { page: state.page + 1, pages });
    element("back").disabled = state.page === 0;
    element("forth").disabled = state.page === pages - 1;
    table.querySelectorAll("thead th").forEach((head) => {
      const button = head.querySelector("button");
      if (button && Number(button.dataset.column) === state.column) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  };
  const filters = ["search", "of-kind", "of-site", "from", "to"].map(element);
  const search = () => {
    const [text, kind, site, from, to] = filters.map((one) => one.value);
    const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
    const [first, behind] = [from ? Date.parse(from) / 1000 : 0, to ? Date.parse(to) / 1000 + 86400 : Infinity];
    state.found = rows.map((_, at) => at).filter((at) => {
      const row = rows[at];
      return (!kind || row[KIND] === kind) && (!site || row[COPY + 3] === site || row[ORIGINAL + 3] === site)
        && row[SEEN] >= first && row[SEEN] < behind && wanted.every((word) => folded[at].includes(word));
    });
    const sign = state.down ? -1 : 1;
    state.found.sort((one, other) => {
      const [a, b] = [value(rows[one]), value(rows[other])];
      const order = typeof a === "number" ? a - b : a.localeCompare(b, language);
      return sign * order || one - other;
    });
    state.page = 0;
    show();
  };
  // What there is to choose from, with the number of rows; the most frequent first.
  const offer = (select, of, name) => {
    const counts = new Map();
    rows.forEach((row) => new Set(of(row)).forEach((one) => counts.set(one, (counts.get(one) || 0) + 1)));
    const most = [...counts].filter(([one]) => one).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 500);
    most.forEach(([one, many]) => {
      const option = make("option", "", `${name(one)} (${number(many)})`);
      option.value = one;
      select.append(option);
    });
  };
  offer(element("of-kind"), (row) => [row[KIND]], (kind) => say(`kind.${kind}`));
  offer(element("of-site"), (row) => [row[COPY + 3], row[ORIGINAL + 3]], (site) => site);
  const days = [rows[rows.length - 1][SEEN], rows[0][SEEN]].map((seconds) => time(seconds).slice(0, 10));
  filters.slice(3).forEach((one) => { [one.min, one.max] = days; });
  filters.forEach((one) => one.addEventListener("input", search));
  element("clear").addEventListener("click", () => {
    filters.forEach((one) => { one.value = ""; });
    search();
  });
  tables.table = () => [
    ["copies.first_seen", "kind", "copies.similarity", "copies.copy_title", "copies.copy", "copies.its_site", "copies.original_title", "copies.original", "copies.original_site"].map((one) => say(one)),
    ...state.found.map((at) => rows[at]).map((row) => [
      time(row[SEEN]), say(`kind.${row[KIND]}`), row[SIMILARITY], row[COPY], row[COPY + 1], row[COPY + 3], row[ORIGINAL], row[ORIGINAL + 1], row[ORIGINAL + 3],
    ]),
  ];
  element("back").addEventListener("click", () => { state.page -= 1; show(); });
  element("forth").addEventListener("click", () => { state.page += 1; show(); });
  table.tHead.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const column = Number(button.dataset.column);
    state.down = column === state.column ? !state.down : column === SEEN || column === SIMILARITY;
    state.column = column;
    search();
  });
  element("filters").hidden = false;
  element("pager").hidden = false;
  search();
})();
