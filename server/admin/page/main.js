// @ts-check
/** The page's frame: panels by address, health, theme and the keyboard. */
import { get, Problem } from "./api.js";
import { announce, eachOf, fill, h, number, setText } from "./dom.js";
import { brokersPanel } from "./panels/brokers.js";
import { faultsPanel } from "./panels/faults.js";
import { metadataLogPanel } from "./panels/metadata_log.js";
import { overviewPanel } from "./panels/overview.js";
import { requestsPanel } from "./panels/requests.js";
import { stubsPanel } from "./panels/stubs.js";
import { topicsPanel } from "./panels/topics.js";
import { seen } from "./requests_seen.js";

/**
 * @typedef {object} Panel
 * @property {HTMLElement} element
 * @property {() => Promise<void> | void} refresh
 * @property {number} everyMs
 * @property {HTMLInputElement} [search]
 * @property {Record<string, () => void>} [keys]
 * @property {(id: string) => Promise<unknown>} [openItem] of an address as `#/brokers/10`
 */

/** @type {{id: string, title: string, make: () => Panel}[]} */
const PANELS = [
  { id: "overview", title: "Overview", make: overviewPanel },
  { id: "requests", title: "Requests", make: requestsPanel },
  { id: "brokers", title: "Brokers", make: brokersPanel },
  { id: "topics", title: "Topics", make: topicsPanel },
  { id: "log", title: "Log", make: metadataLogPanel },
  { id: "stubs", title: "Stubs", make: stubsPanel },
  { id: "faults", title: "Faults", make: faultsPanel },
];
const SHORTCUTS = [
  ["1 … 7", "a panel"], ["/", "search"], ["↑ ↓ or k j, Page Up, Page Down, Home, End", "move in a list"],
  ["Enter", "open the selected row"], ["Escape", "close, or follow new lines again"], ["p", "pause the requests"],
  ["n", "write a stub"], ["t", "dark or light"], ["?", "this help"],
];
/** Keys that work everywhere, by opening the panel that has them. @type {Record<string, string>} */
const KEYS_OF = { p: "requests", n: "stubs" };
/** Keys that move in the panel's list, wherever the focus is. */
const LIST_KEYS = ["ArrowDown", "ArrowUp", "PageDown", "PageUp", "Home", "End", "j", "k"];
const THEMES = ["system", "dark", "light"];

/** @type {Map<string, Panel>} */
const made = new Map();
const place = /** @type {HTMLElement} */ (document.getElementById("panel"));
/** @type {Panel} */
let current;

/** @param {string} id */
const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

function show() {
  // Another fragment, as that of the skip link, is a place in the current panel.
  if (current && location.hash && !location.hash.startsWith("#/")) return;
  const [, id, item] = /^#\/([^/]*)\/?(.*)$/.exec(location.hash) ?? [];
  const found = PANELS.find((panel) => panel.id === id) ?? PANELS[0];
  let panel = made.get(found.id);
  if (!panel) {
    panel = found.make();
    made.set(found.id, panel);
    place.append(panel.element);
  }
  for (const other of made.values()) other.element.hidden = other !== panel;
  current = panel;
  document.title = `${found.title} · mockraft`;
  for (const link of document.querySelectorAll("#panels a")) {
    if (link.getAttribute("href") === `#/${found.id}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.querySelector("#panels [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  refresh(panel);
  if (item) panel.openItem?.(item).catch((problem) => announce(String(problem), "bad"));
}

/** @param {string} id */
function goTo(id) {
  if (made.get(id) === current) return;
  location.hash = `#/${id}`;
  show();
}

let refreshing = 0;

/** @param {Panel} panel */
async function refresh(panel) {
  const turn = ++refreshing;
  try {
    await panel.refresh();
  } catch (problem) {
    if (panel.element.dataset.problem !== String(problem)) announce(String(problem), "bad");
    panel.element.dataset.problem = String(problem);
  }
  setTimeout(async () => {
    while (document.hidden) await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
    if (turn === refreshing) refresh(panel);
  }, panel.everyMs);
}

/** @typedef {{name: string, value: string, tone?: string, to?: string}} Fact */

const renderFacts = eachOf(byId("health"), (/** @type {Fact} */ { name }) => name, ({ name, to }) => {
  const value = h("b", {});
  const element = h(to ? "a" : "span", { href: to }, name && h("span", { class: "name" }, name), " ", value);
  return { element, update: (fact) => { setText(value, fact.value); element.className = `fact ${fact.tone ?? ""}`; } };
});

async function refreshHealth() {
  try {
    const health = await get("v1/health");
    /** @type {(name: string, count: number, tone: string, to: string) => Fact[]} */
    const some = (name, count, tone, to) => (count > 0 ? [{ name, value: number(count), tone, to }] : []);
    renderFacts([
      { name: "", value: seen.isOpen ? "live" : "connecting", tone: seen.isOpen ? "good dot" : "warn dot" },
      { name: "leader", value: String(health.leaderId ?? "none"), tone: health.leaderId === null ? "bad" : "", to: "#/overview" },
      { name: "brokers", value: number(health.brokers.total), to: "#/brokers" },
      ...some("fenced", health.brokers.fenced, "bad", "#/brokers"),
      { name: "req/s", value: number(Math.round(seen.rate(health.nowMs))), to: "#/requests" },
      ...some("stubs", health.stubs, "accent", "#/stubs"),
      ...some("faults", health.faults, "warn", "#/faults"),
      ...some("unmatched", health.unmatched, "warn", "#/requests"),
      ...some("failures", health.failures, "bad", "#/requests"),
      { name: "cluster", value: health.clusterId, tone: "minor" },
      { name: "version", value: health.version, tone: "minor" },
    ]);
  } catch (error) {
    const reason = error instanceof Problem ? error.message : "the controller does not answer";
    renderFacts([{ name: "", value: reason, tone: "bad dot" }]);
  }
  setTimeout(refreshHealth, 1000);
}

/** @param {string} theme */
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("mockraft-theme", theme);
  const button = byId("theme");
  setText(button, { system: "◐", dark: "●", light: "○" }[theme] ?? "◐");
  button.setAttribute("aria-label", `Theme: ${theme}`);
  button.title = `Theme: ${theme} (t)`;
}

function nextTheme() {
  const at = THEMES.indexOf(document.documentElement.dataset.theme ?? "system");
  setTheme(THEMES[(at + 1) % THEMES.length]);
}

function showHelp() {
  const dialog = h("dialog", { class: "sheet", "aria-labelledby": "help-title" },
    h("form", { method: "dialog" }, h("h2", { id: "help-title" }, "Keyboard"),
      h("dl", { class: "facts keys" }, SHORTCUTS.flatMap(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)])),
      h("button", { class: "main" }, "Close")));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** @param {HTMLElement} field */
function leave(field) {
  if (field instanceof HTMLInputElement && field.type === "search" && field.value) {
    // Chromium empties a search field on Escape without an event that the panel sees.
    field.value = "";
    field.dispatchEvent(new Event("input"));
  }
  field.blur();
}

/** @param {string} key @returns {boolean} true if the panel has a list */
function moveInList(key) {
  const list = /** @type {HTMLElement | null} */ (current.element.querySelector("[role=grid]"));
  list?.focus();
  list?.dispatchEvent(new KeyboardEvent("keydown", { key, cancelable: true }));
  return list !== null;
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (target.matches("input, textarea, select")) {
    if (event.key === "Escape") leave(target);
    return;
  }
  const number = Number(event.key);
  if (number >= 1 && number <= PANELS.length) location.hash = `#/${PANELS[number - 1].id}`;
  else if (event.key === "/") {
    if (!current.search) goTo("requests");
    current.search?.focus();
  }
  else if (event.key === "?") showHelp();
  else if (event.key === "t") nextTheme();
  else if (KEYS_OF[event.key]) {
    goTo(KEYS_OF[event.key]);
    current.keys?.[event.key]();
  }
  else if (!LIST_KEYS.includes(event.key) || !moveInList(event.key)) return;
  event.preventDefault();
}

fill(byId("panels"), PANELS.map(({ id, title }, at) => h("li", {}, h("a", { href: `#/${id}`, "aria-keyshortcuts": String(at + 1) }, title))));
setTheme(localStorage.getItem("mockraft-theme") ?? "system");
byId("theme").addEventListener("click", nextTheme);
byId("help").addEventListener("click", showHelp);
document.addEventListener("keydown", onKey);
window.addEventListener("hashchange", show);
seen.start();
show();
refreshHealth();
