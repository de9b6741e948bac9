for (const search of document.querySelectorAll("input[type=search]")) {
  const rows = [...search.closest(".tools").nextElementSibling.querySelectorAll("tbody tr")];
  const matches = search.parentElement.querySelector("output");
  search.addEventListener("input", () => {
    const text = search.value.toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(text);
    matches.textContent = text ? `${rows.filter(row => !row.hidden).length} of ${rows.length}` : "";
  });
}
for (const button of document.querySelectorAll("button[data-open]"))
  button.addEventListener("click", () => {
    const all = [...button.closest("section").querySelectorAll("details")], open = all.some(each => !each.open);
    for (const each of all) each.open = open;
  });
for (const button of document.querySelectorAll("button[data-copy]"))
  button.addEventListener("click", async () => {
    const text = button.parentElement.nextElementSibling;
    try { await navigator.clipboard.writeText(text.textContent); button.textContent = "copied"; }
    catch { getSelection().selectAllChildren(text); button.textContent = "selected"; }
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  });
document.addEventListener("keydown", event => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.closest("input")) return;
  const search = document.querySelector("details[open] input[type=search], section > .tools input[type=search]");
  if (search) { event.preventDefault(); search.focus(); }
});
addEventListener("beforeprint", () => { for (const each of document.querySelectorAll("details")) each.open = true; });
