"""
The script of the page: it draws a table from the JSON beside it, sorts a table, and searches a list. It holds no data.
"""

from base64 import b64encode
from hashlib import sha256
from typing import Final


SCRIPT: Final = """
"use strict";
const made = (name, content, css) => {
  const node = document.createElement(name);
  node.append(content);
  if (css) node.className = css;
  return node;
};
const number = cell => {
  const few = cell.textContent.match(/^([0-4]) of ([1-4])$/);
  if (few) return 100 * few[1] / few[2];
  const found = cell.textContent.replace(/,/g, "").replace(/\\u2212/g, "-").match(/-?[0-9.]+/);
  return found ? Number(found[0]) : -Infinity;
};
const order = (one, other, down) => (typeof one === "number" ? one - other || 0 : one.localeCompare(other)) * (down ? -1 : 1);
const sortable = (table, sort) => {
  const line = table.tHead.rows[table.tHead.rows.length - 1];
  [...line.cells].forEach((heading, n) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    const numeric = heading.classList.contains("n");
    button.addEventListener("click", () => {
      const was = heading.getAttribute("aria-sort");
      const down = was ? was === "ascending" : numeric;
      for (const cell of line.cells) cell.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      sort(n, numeric, down);
    });
  });
};
const searchable = (box, total, search) => {
  if (total < 12) return;
  const label = made("label", "Search ", "search"), input = document.createElement("input"), said = document.createElement("output");
  input.type = "search";
  input.autocomplete = "off";
  label.append(input, " ", said);
  box.before(label);
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase().split(/\\s+/).filter(Boolean);
    const shown = search(words => wanted.every(word => words.includes(word)), wanted.length > 0);
    said.textContent = wanted.length ? `${shown} of ${total}` : "";
  });
};
for (const block of document.querySelectorAll("script[type='application/json']")) {
  const said = cell => typeof cell === "number" ? cell.toLocaleString("en") : Array.isArray(cell) ? cell[0] : cell;
  const value = cell => typeof cell === "number" ? cell : Array.isArray(cell) ? cell[1] : -Infinity;
  const {kinds, rows, most} = JSON.parse(block.textContent), box = block.parentElement, table = box.querySelector("table");
  const body = table.tBodies[0], more = made("button", "", "more");
  const entries = rows.map(cells => ({cells, words: cells.map(said).join(" ").toLowerCase()}));
  let shown = entries, room = most;
  const drawn = ({cells}) => {
    const row = document.createElement("tr");
    cells.forEach((cell, n) => {
      const text = said(cell), named = n === 0;
      const node = made(named ? "th" : "td", kinds[n] === "n" ? text : made("bdi", text), named ? "" : kinds[n]);
      if (named) node.scope = "row";
      if (kinds[n] === "n" && !/[1-9]/.test(text)) node.className = "n z";
      row.append(node);
    });
    return row;
  };
  const draw = () => {
    body.replaceChildren(...shown.slice(0, room).map(drawn));
    more.hidden = shown.length <= room;
    more.textContent = `Show all ${shown.length.toLocaleString("en")} rows`;
  };
  more.type = "button";
  more.addEventListener("click", () => { room = Infinity; draw(); });
  box.after(more);
  sortable(table, (n, numeric, down) => {
    const key = ({cells}) => numeric ? value(cells[n]) : said(cells[n]);
    entries.sort((one, other) => order(key(one), key(other), down));
    const kept = new Set(shown);
    shown = entries.filter(entry => kept.has(entry));
    draw();
  });
  searchable(box, entries.length, matches => {
    shown = entries.filter(entry => matches(entry.words));
    draw();
    return shown.length;
  });
  draw();
}
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  if (body.rows.length > 1) sortable(table, (n, numeric, down) => {
    const keyed = [...body.rows].map(row => [numeric ? number(row.cells[n]) : row.cells[n].textContent.trim(), row]);
    keyed.sort(([one], [other]) => order(one, other, down));
    body.append(...keyed.map(([, row]) => row));
  });
}
for (const box of document.querySelectorAll("[data-filter]")) {
  const rows = [...box.querySelectorAll(box.dataset.filter)], words = rows.map(row => row.textContent.toLowerCase());
  searchable(box, rows.length, (matches, any) => {
    if (any) for (const folded of box.querySelectorAll(":scope>details")) folded.open = true;
    rows.forEach((row, n) => { row.hidden = !matches(words[n]); });
    return rows.filter(row => !row.hidden).length;
  });
}
"""

DIGEST: Final = f"sha256-{b64encode(sha256(SCRIPT.encode()).digest()).decode()}"
"""What the page's security policy lets run: this script and no other."""
