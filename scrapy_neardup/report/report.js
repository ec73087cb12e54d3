"use strict";
(() => {
  const element = (id) => document.getElementById(id);
  const root = document.documentElement;

  // Light and dark: as the system says, until the button is used.
  const theme = element("theme");
  const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const label = () => {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.setAttribute("aria-pressed", String(isDark()));
  };
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    label();
  });
  theme.hidden = false;
  label();

  // Groups: the first ten, until all are asked for.
  const more = element("more-groups");
  if (more) {
    const others = [...element("group-list").children].slice(10);
    others.forEach((group) => { group.hidden = true; });
    more.hidden = !others.length;
    more.addEventListener("click", () => {
      others.forEach((group) => { group.hidden = false; });
      more.hidden = true;
    });
  }

  // Pairs: one at a time.
  const choice = element("pair");
  if (choice) {
    const pairs = [...element("pair-list").children];
    const show = (at) => {
      choice.selectedIndex = at;
      pairs.forEach((pair, number) => { pair.hidden = number !== at; });
      element("previous").disabled = at === 0;
      element("next").disabled = at === pairs.length - 1;
    };
    choice.addEventListener("change", () => show(choice.selectedIndex));
    element("previous").addEventListener("click", () => show(choice.selectedIndex - 1));
    element("next").addEventListener("click", () => show(choice.selectedIndex + 1));
    element("switch").hidden = false;
    show(0);
  }

  // The table of copies. Whatever comes from a page is put in as text, never as HTML.
  const data = element("rows");
  if (!data) return;
  const LENGTH = 50;
  const [SEEN, KIND, SIMILARITY, COPY, ORIGINAL] = [0, 1, 2, 3, 7]; // there and behind: title, URL, whether it is a link, site
  const rows = JSON.parse(data.textContent);
  const table = element("table");
  const folded = rows.map((row) => row.filter((cell) => typeof cell === "string").join("\n").toLowerCase());
  const state = { column: SEEN, down: true, page: 0, found: rows.map((_, at) => at) };

  const make = (name, text, kind) => {
    const made = document.createElement(name);
    if (kind) made.className = kind;
    made.textContent = text;
    return made;
  };
  const page = (row, first) => {
    const cell = document.createElement("td");
    const [title, url, link, site] = row.slice(first, first + 4);
    if (!site) {
      cell.append(make("span", "no longer in the state", "note"));
      return cell;
    }
    const name = make(link ? "a" : "span", "");
    name.append(make("bdi", title || url));
    if (link) {
      name.href = url;
      name.rel = "noreferrer noopener";
    }
    cell.append(name);
    if (title) {
      const below = make("span", "", "url");
      below.append(make("bdi", url));
      cell.append(below);
    }
    return cell;
  };
  const time = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ");
  const line = (row) => {
    const made = document.createElement("tr");
    const cells = [make("td", ""), make("td", ""), make("td", row[SIMILARITY].toFixed(2))];
    cells[0].append(make("time", time(row[SEEN])));
    cells[1].append(make("span", row[KIND].replace("_", " "), `kind ${row[KIND]}`));
    const sites = [COPY, ORIGINAL].map((first) => {
      const cell = make("td", "");
      cell.append(make("bdi", row[first + 3]));
      return cell;
    });
    made.append(...cells, page(row, COPY), sites[0], page(row, ORIGINAL), sites[1]);
    return made;
  };
  const value = (row) => row[state.column] || (state.column === COPY || state.column === ORIGINAL ? row[state.column + 1] : row[state.column]);
  const show = () => {
    const pages = Math.max(1, Math.ceil(state.found.length / LENGTH));
    state.page = Math.min(state.page, pages - 1);
    const first = state.page * LENGTH;
    const shown = state.found.slice(first, first + LENGTH);
    table.tBodies[0].replaceChildren(...shown.map((at) => line(rows[at])));
    element("found").textContent = `${state.found.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")}`;
    element("where").textContent = `page ${state.page + 1} of ${pages}`;
    element("back").disabled = state.page === 0;
    element("forth").disabled = state.page === pages - 1;
    table.querySelectorAll("th").forEach((head) => {
      if (Number(head.firstElementChild.dataset.column) === state.column) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  };
  const search = () => {
    const words = element("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    state.found = rows.map((_, at) => at).filter((at) => words.every((word) => folded[at].includes(word)));
    const sign = state.down ? -1 : 1;
    state.found.sort((one, other) => {
      const [a, b] = [value(rows[one]), value(rows[other])];
      const order = typeof a === "number" ? a - b : a.localeCompare(b);
      return sign * order || one - other;
    });
    state.page = 0;
    show();
  };
  element("search").addEventListener("input", search);
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
  search();
})();
