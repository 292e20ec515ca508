// Completes words as the user types, and lets "/" lead to the field. The page works without.
const field = document.querySelector("input[type=search]"), list = document.getElementById("completions");
let waiting, asked = 0;
async function complete() {
  const turn = ++asked;
  const answer = await fetch("?format=completions&q=" + encodeURIComponent(field.value));
  if (!answer.ok || turn !== asked) return;
  const [, found] = await answer.json();
  list.replaceChildren(...found.map(words => Object.assign(document.createElement("option"), { value: words })));
}
field.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(complete, 120); });
document.addEventListener("keydown", event => {
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key !== "/" || typing || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  field.select();
});
