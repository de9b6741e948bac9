// @ts-check
/** Brokers with their state and directories, and commands for one of them. */
import { get, send } from "../api.js";
import { Detail, copyButton, facts } from "../detail.js";
import { announce, clockTime, h, many, number, setText } from "../dom.js";
import { jsonView } from "../json_view.js";
import { timeline } from "../timeline.js";
import { VirtualList } from "../virtual_list.js";

/** @param {any} broker @returns {{name: string, tone: string}} */
export function stateOf(broker) {
  if (broker.inControlledShutdown) return { name: "shutting down", tone: "warn" };
  if (broker.fenced) return { name: "fenced", tone: "bad" };
  return { name: "running", tone: "good" };
}

/** @param {any} broker */
function dirsView(broker) {
  const dirs = broker.logDirs;
  const label = ["online", "offline", "cordoned"]
    .map((state) => [state, dirs.filter((/** @type {any} */ dir) => dir.state === state).length])
    .filter(([, count]) => count).map(([state, count]) => `${count} ${state}`).join(", ") || "none";
  return h("span", { class: "dirs", role: "img", "aria-label": `Directories: ${label}`, title: label },
    dirs.slice(0, 12).map((/** @type {any} */ dir) => h("i", { class: `dir ${dir.state}` })),
    h("span", {}, dirs.length > 12 ? ` +${dirs.length - 12}` : ""));
}

/** @param {any} broker */
const listenersOf = (broker) => broker.listeners.map((/** @type {any} */ one) => `${one.name}://${one.host}:${one.port}`);

const COLUMNS = [
  { name: "Broker", kind: "id", cell: (/** @type {any} */ broker) => h("b", {}, broker.brokerId) },
  { name: "State", kind: "state", cell: (/** @type {any} */ broker) => h("span", { class: `tag ${stateOf(broker).tone}` }, stateOf(broker).name) },
  { name: "Lag", kind: "num", cell: (/** @type {any} */ broker) => lagView(broker) },
  { name: "Epoch", kind: "num minor", cell: (/** @type {any} */ broker) => number(broker.epoch) },
  { name: "Directories", kind: "dirs-column", cell: dirsView },
  { name: "Rack", kind: "client minor", cell: (/** @type {any} */ broker) => broker.rack ?? "" },
  { name: "Listeners", kind: "grow minor", cell: (/** @type {any} */ broker) => listenersOf(broker).join(" ") },
];

/** @param {any} broker */
function lagView(broker) {
  if (broker.caughtUp && !broker.lag) return h("span", { class: "note", title: "The broker has every committed record" }, "0");
  return h("span", { class: broker.caughtUp ? "" : "warn-text", title: "Committed records that the broker lacks" }, number(broker.lag));
}

const DOINGS = [
  { path: "fence", name: "Fence", done: "fenced" },
  { path: "unfence", name: "Unfence", done: "unfenced" },
  { path: "expire-session", name: "Expire session", done: "without a session" },
  { path: "unregister", name: "Unregister", done: "unregistered", isFinal: true },
];

export function brokersPanel() {
  /** @type {any[]} */
  let brokers = [];
  let opened = -1;
  const search = h("input", { type: "search", placeholder: "Search  /", "aria-label": "Search brokers", oninput: () => draw() });
  const only = h("select", { "aria-label": "State", onchange: () => draw() },
    ["All states", "running", "fenced", "shutting down", "behind", "with offline dirs"].map((name, at) => h("option", { value: at ? name : "" }, name)));
  const count = h("span", { class: "count", role: "status", "aria-live": "off" });
  const detail = new Detail("Broker", () => {
    if (location.hash.startsWith("#/brokers/")) history.replaceState(null, "", "#/brokers");
    list.release();
    list.focus();
  });
  const events = timeline(() => opened);
  const list = new VirtualList({
    label: "Brokers", columns: COLUMNS, keyOf: (/** @type {any} */ broker) => String(broker.brokerId), onOpen: open,
    onActive: (/** @type {any} */ broker) => detail.isOpen && open(broker), empty: "No registered broker, or none that matches.",
    rowClass: (/** @type {any} */ broker) => (stateOf(broker).tone === "good" ? "" : stateOf(broker).tone),
  });

  function draw() {
    const words = search.value.trim().toLowerCase();
    const shown = brokers.filter((broker) => (!words || textOf(broker).includes(words)) && isOf(broker, only.value));
    list.show(shown);
    setText(count, shown.length === brokers.length ? many(brokers.length, "broker") : `${number(shown.length)} of ${many(brokers.length, "broker")}`);
  }

  async function refresh() {
    ({ brokers } = await get("v1/brokers"));
    draw();
    const now = detail.isOpen && brokers.find((broker) => broker.brokerId === opened);
    if (now) detail.body.firstElementChild.replaceWith(stateView(now));
    if (detail.isOpen) await events.refresh();
  }

  /** Open the broker of an address: `#/brokers/10`. @param {string} id */
  async function openItem(id) {
    await refresh();
    const at = list.items.findIndex((/** @type {any} */ broker) => String(broker.brokerId) === id);
    const found = brokers.find((broker) => String(broker.brokerId) === id);
    if (!found) return announce(`Broker ${id} is not registered.`, "bad");
    if (at >= 0) list.activate(at);
    open(found);
    detail.element.focus();
  }

  function open(/** @type {any} */ broker) {
    opened = broker.brokerId;
    detail.open(`Broker ${broker.brokerId}`, stateView(broker), h("h3", {}, "Events"), events.element,
      h("h3", {}, "Commands"),
      h("div", { class: "buttons" }, DOINGS.map((doing) =>
        h("button", { type: "button", class: doing.isFinal ? "danger" : "", onclick: () => act(broker, doing) }, doing.name))),
      h("h3", {}, "As JSON"), jsonView(broker), h("div", { class: "buttons" }, copyButton(broker)));
    events.refresh().catch((problem) => announce(String(problem), "bad"));
  }

  async function act(/** @type {any} */ broker, /** @type {any} */ { path, done }) {
    try {
      await send("POST", `v1/brokers/${broker.brokerId}/${path}`);
      announce(`Broker ${broker.brokerId} is ${done}.`);
      await refresh();
      if (!brokers.some((one) => one.brokerId === broker.brokerId)) detail.close();
    } catch (problem) {
      announce(String(problem), "bad");
    }
  }

  const element = h("section", { class: "panel split", "aria-label": "Brokers" },
    h("div", { class: "bar" }, search, only, h("span", { class: "space" }), count), list.element, detail.element);
  return { element, search, refresh, everyMs: 2000, openItem };
}

/** @param {any} broker */
function stateView(broker) {
  const { name, tone } = stateOf(broker);
  return h("div", {}, facts([
    ["State", h("span", { class: `tag ${tone}` }, name)], ["Caught up to its registration", broker.caughtUp ? "yes" : "no"],
    ["Lag", broker.lag === null ? null : many(broker.lag, "record")], ["Epoch", number(broker.epoch)],
    ["Rack", broker.rack], ["Incarnation", broker.incarnationId],
    ["Last contact", broker.lastContactMs === null ? "no session" : clockTime(broker.lastContactMs)],
    ["Listeners", h("span", {}, listenersOf(broker).map((/** @type {string} */ one) => h("div", {}, one)))],
  ]),
  h("h3", {}, "Directories"),
  h("ul", { class: "plain" }, broker.logDirs.map((/** @type {any} */ dir) =>
    h("li", {}, h("i", { class: `dir ${dir.state}` }), ` ${dir.state} `, h("code", {}, dir.id)))));
}

/** @param {any} broker */
const textOf = (broker) => `${broker.brokerId} ${stateOf(broker).name} ${broker.rack ?? ""} ${listenersOf(broker).join(" ")}`.toLowerCase();

/** @param {any} broker @param {string} wanted */
function isOf(broker, wanted) {
  if (!wanted) return true;
  if (wanted === "behind") return !broker.caughtUp;
  if (wanted === "with offline dirs") return broker.logDirs.some((/** @type {any} */ dir) => dir.state === "offline");
  return stateOf(broker).name === wanted;
}
