"use strict";
/* A click on the head of a column sorts its table. A tooltip shows the figures below the pointer. All text is set as text. */

for (const table of document.querySelectorAll("table.sort")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    head.firstElementChild.addEventListener("click", () => {
      const numeric = head.classList.contains("n");
      const up = head.ariaSort ? head.ariaSort !== "ascending" : !numeric;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent;
      const order = numeric
        ? (a, b) => Number(key(a)) - Number(key(b))
        : (a, b) => key(a).localeCompare(key(b), "en", { numeric: true });
      const rows = [...table.tBodies[0].rows].sort((a, b) => (up ? order(a, b) : order(b, a)));
      table.tBodies[0].append(...rows);
    });
  });
}

const tip = document.createElement("div");
tip.className = "tooltip";
tip.hidden = true;
document.body.append(tip);

for (const part of document.querySelectorAll("g.tip")) {
  const title = part.querySelector("title");
  part.dataset.tip = title.textContent;
  part.setAttribute("aria-label", title.textContent);
  title.remove(); // or the browser would show its own as well
}

document.addEventListener("pointerover", (event) => {
  const part = event.target.closest("g.tip");
  tip.hidden = !part;
  if (!part) return;
  tip.textContent = part.dataset.tip;
});

document.addEventListener("pointermove", (event) => {
  if (tip.hidden) return;
  const { offsetWidth: width, offsetHeight: height } = tip;
  tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, innerWidth - width - 8))}px`;
  tip.style.top = `${event.clientY + height + 24 > innerHeight ? event.clientY - height - 12 : event.clientY + 18}px`;
});

document.documentElement.classList.add("scripted");
