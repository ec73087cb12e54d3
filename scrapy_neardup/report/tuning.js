"use strict";
(() => {
  const element = (id) => document.getElementById(id);
  const { rows, key, labels, words } = JSON.parse(element("data").textContent);
  const say = (name, values) => words[name].replace(/\{(\w+)\}/g, (_, what) => values[what]);
  const pairs = [...element("pairs").children];
  const buttons = [...document.querySelectorAll("[data-answer]")];
  const said = new Array(rows.length).fill(null);
  let at = 0;
  let moved = false;

  // What the browser remembers, where it may: otherwise the answers last as long as the page is open.
  const name = `scrapy-neardup tune ${key}`;
  let keeps = true;
  try {
    const kept = JSON.parse(localStorage.getItem(name) || "[]");
    kept.forEach((one, number) => {
      if (number < said.length && ["copy", "different", "skip"].includes(one)) said[number] = one;
    });
  } catch { keeps = false; }
  const keep = () => {
    try { localStorage.setItem(name, JSON.stringify(said)); } catch { keeps = false; }
  };

  const show = () => {
    const answered = said.filter(Boolean).length;
    pairs.forEach((pair, number) => { pair.hidden = number !== at; });
    element("end").hidden = at < rows.length;
    element("where").textContent = say(at < rows.length ? "tune.where" : "tune.answered", { place: at + 1, many: rows.length, answered });
    element("kept").textContent = keeps ? "" : words["tune.forgets"];
    element("done").style.width = `${(100 * answered) / Math.max(1, rows.length)}%`;
    element("back").disabled = at === 0;
    element("forth").disabled = at >= rows.length;
    element("save").disabled = answered === 0;
    element("save").classList.toggle("ready", answered > 0 && said.every(Boolean));
    buttons.forEach((button) => {
      button.disabled = at >= rows.length;
      button.setAttribute("aria-pressed", String(at < rows.length && said[at] === button.dataset.answer));
    });
  };
  const go = (to) => {
    at = Math.min(Math.max(0, to), rows.length);
    show();
    if (moved) element("place").scrollIntoView();
    moved = true;
  };
  const answer = (what) => {
    if (at >= rows.length) return;
    said[at] = what;
    keep();
    go(at + 1);
  };
  const save = () => {
    const lines = rows.map((row, number) => (said[number] ? `${JSON.stringify({ ...row, label: said[number] })}\n` : ""));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(lines, { type: "application/x-ndjson" }));
    link.download = labels;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };

  buttons.forEach((button) => button.addEventListener("click", () => answer(button.dataset.answer)));
  element("back").addEventListener("click", () => go(at - 1));
  element("forth").addEventListener("click", () => go(at + 1));
  element("save").addEventListener("click", save);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const to = { y: () => answer("copy"), n: () => answer("different"), s: () => answer("skip"), u: () => go(at - 1), ArrowLeft: () => go(at - 1), ArrowRight: () => go(at + 1) }[event.key];
    if (to) { event.preventDefault(); to(); }
  });
  element("answers").hidden = false;
  const open = said.indexOf(null);
  go(open < 0 ? rows.length : open);
})();
