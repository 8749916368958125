"""
What the page can do where scripts run: sort a table, search a list. It holds no data.
"""

from base64 import b64encode
from hashlib import sha256
from typing import Final


SCRIPT: Final = """
"use strict";
const number = cell => {
  const found = (cell.dataset.v ?? cell.textContent).replace(/,/g, "").replace(/\\u2212/g, "-").match(/-?[0-9.]+(?:e[-+]?[0-9]+)?/);
  return found ? Number(found[0]) : -Infinity;
};
const text = cell => cell.textContent.trim();
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], line = table.tHead.rows[table.tHead.rows.length - 1];
  if (body.rows.length < 2) continue;
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
      const keyed = [...body.rows].map(row => [numeric ? number(row.cells[n]) : text(row.cells[n]), row]);
      keyed.sort(([a], [b]) => (numeric ? (a === b ? 0 : a < b ? -1 : 1) : a.localeCompare(b)) * (down ? -1 : 1));
      body.append(...keyed.map(([, row]) => row));
    });
  });
}
for (const box of document.querySelectorAll("[data-filter]")) {
  const rows = [...box.querySelectorAll(box.dataset.filter)];
  if (rows.length < 12) continue;
  const words = rows.map(row => row.textContent.toLowerCase());
  const label = document.createElement("label"), input = document.createElement("input");
  const said = document.createElement("output");
  input.type = "search";
  input.autocomplete = "off";
  label.className = "search";
  label.append("Search ", input, " ", said);
  box.before(label);
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase().split(/\\s+/).filter(Boolean);
    let shown = 0;
    if (wanted.length) for (const folded of box.querySelectorAll(":scope>details")) folded.open = true;
    rows.forEach((row, n) => {
      row.hidden = !wanted.every(word => words[n].includes(word));
      shown += row.hidden ? 0 : 1;
    });
    said.textContent = wanted.length ? `${shown} of ${rows.length}` : "";
  });
}
"""

DIGEST: Final = f"sha256-{b64encode(sha256(SCRIPT.encode()).digest()).decode()}"
"""What the page's security policy lets run: this script and no other."""
