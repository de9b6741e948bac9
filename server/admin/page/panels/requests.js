// @ts-check
/** Live requests in the order of their answers, the newest on top: client, API, who answered and why. */
import { get, request } from "../api.js";
import { Detail, copyButton, facts } from "../detail.js";
import { announce, clockTime, fill, h, inWords, many, milliseconds, number, setText } from "../dom.js";
import { jsonView } from "../json_view.js";
import { answeredBy, isStubbed, lineKey, seen } from "../requests_seen.js";
import { VirtualList } from "../virtual_list.js";
import { draftStub } from "./stubs.js";

/** @typedef {import("../requests_seen.js").Line} Line */

const DRAW_EVERY_MS = 200;
const FOUND_MAX = 1000;

/** @param {Line} line */
const textOf = (line) =>
  `${line.api} v${line.apiVersion} ${line.clientId ?? ""} ${line.brokerId ?? ""} ${answeredBy(line)} ${line.error ?? ""} ${line.reason ?? ""}`.toLowerCase();

/** @type {{name: string, kind?: string, cell: (line: Line) => any}[]} */
const COLUMNS = [
  { name: "Answered", kind: "time", cell: (line) => timeView(line.answeredMs) },
  { name: "Id", kind: "num minor", cell: (line) => line.id },
  { name: "API", kind: "grow", cell: (line) => [h("b", {}, inWords(line.api)), h("span", { class: "note" }, ` v${line.apiVersion}`)] },
  { name: "Client", kind: "client grow minor", cell: (line) => line.clientId ?? "" },
  { name: "Sender", kind: "num", cell: (line) => `${line.forwarded ? "via " : ""}${line.brokerId ?? ""}` },
  { name: "Answered by", kind: "by minor", cell: (line) => h("span", { class: `tag ${isStubbed(line) ? "accent" : "plain"}`, title: line.reason ?? line.servedBy }, answeredBy(line)) },
  { name: "Error", kind: "by", cell: errorView },
  { name: "ms", kind: "num", cell: (line) => milliseconds(line.tookUs) },
];

/** @param {number} ms */
const timeView = (ms) => [clockTime(ms).slice(0, -4), h("span", { class: "ms-part" }, clockTime(ms).slice(-4))];

/** @param {Line} line */
function errorView(line) {
  const text = line.error ?? (line.failure ? "failed" : line.unmatched ? "unmatched" : "");
  return text && h("span", { class: `tag ${line.failure ? "bad" : "warn"}`, title: `${text} ${line.reason ?? ""}` }, inWords(text));
}

export function requestsPanel() {
  const filters = makeFilters(() => draw());
  const search = h("input", { type: "search", id: "requests-search", placeholder: "Search  /", "aria-label": "Search requests",
    oninput: () => { found = null; draw(); },
    onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Enter" && searchBodies() });
  const bodies = h("button", { type: "button", class: "minor", title: "Search the decoded headers and bodies too (Enter)", onclick: () => searchBodies() }, "Search bodies");
  const pause = h("button", { type: "button", "aria-pressed": "false", title: "Pause (p)", onclick: () => setPaused(!paused) }, "Pause");
  const count = h("span", { class: "count", role: "status", "aria-live": "off" });
  const detail = new Detail("Request", () => { list.release(); list.focus(); });
  const list = new VirtualList({
    label: "Requests", columns: COLUMNS, keyOf: lineKey, onOpen: open, empty: "No requests yet, or none that match.",
    rowClass: (line) => (line.failure ? "bad" : line.unmatched || line.error ? "warn" : isStubbed(line) ? "accent" : ""),
    onActive: (line) => detail.isOpen && open(line),
  });
  /** @type {Line[] | null} */
  let paused = null;
  /** @type {Line[] | null} */
  let found = null;
  let totalAtPause = 0;
  let isDue = false;
  let drawnTop = "";

  seen.listeners.add(() => {
    if (isDue || element.hidden) return;
    isDue = true;
    setTimeout(() => { isDue = false; draw(); }, DRAW_EVERY_MS);
  });

  function setPaused(/** @type {any} */ on) {
    paused = on ? seen.lines.slice() : null;
    totalAtPause = seen.total;
    pause.setAttribute("aria-pressed", String(Boolean(on)));
    setText(pause, on ? "Resume" : "Pause");
    draw();
  }

  function draw() {
    const all = found ?? paused ?? seen.lines;
    const words = found ? "" : search.value.trim().toLowerCase();
    const match = filters.matching();
    const lines = [];
    for (let at = all.length - 1; at >= 0; at--) {
      if (match(all[at]) && (!words || textOf(all[at]).includes(words))) lines.push(all[at]);
    }
    const added = drawnTop ? lines.findIndex((line) => lineKey(line) === drawnTop) : 0;
    drawnTop = lines.length ? lineKey(lines[0]) : "";
    list.show(lines, Math.max(0, added));
    filters.offer(all);
    const waiting = paused ? seen.total - totalAtPause : 0;
    setText(count, [
      lines.length === all.length ? many(lines.length, "line") : `${number(lines.length)} of ${many(all.length, "line")}`,
      found && "with matching bodies",
      waiting && `${number(waiting)} new`,
    ].filter(Boolean).join(" · "));
  }

  async function searchBodies() {
    const words = search.value.trim();
    if (!words) return;
    try {
      const { requests } = await get(`v1/requests?limit=${FOUND_MAX}&q=${encodeURIComponent(words)}`);
      found = requests;
      draw();
      announce(`${many(requests.length, "request")} found.`);
    } catch (problem) {
      announce(String(problem), "bad");
    }
  }

  async function open(/** @type {Line} */ line) {
    const title = `${line.api} v${line.apiVersion}`;
    try {
      const exchange = await get(`v1/requests/${line.id}`);
      if (!list.activeKey || list.activeKey === lineKey(line)) detail.open(title, ...exchangeView(line, exchange));
    } catch (problem) {
      detail.open(title, h("p", { class: "error" }, String(problem)));
    }
  }

  const clear = h("button", { type: "button", class: "minor", title: "Clear the lines, here and in the journal", onclick: async () => {
    await request("v1/requests", { method: "DELETE" });
    found = null;
    seen.clear();
    announce("The journal is empty.");
  } }, "Clear");
  const element = h("section", { class: "panel split", "aria-label": "Requests" },
    h("div", { class: "bar" }, search, bodies, ...filters.elements, h("span", { class: "space" }), count, pause, clear),
    list.element, detail.element);
  return { element, search, refresh: draw, everyMs: 2000, keys: { p: () => setPaused(!paused) } };
}

/** @param {() => void} onChange */
function makeFilters(onChange) {
  const api = h("select", { "aria-label": "API", onchange: onChange }, h("option", { value: "" }, "All APIs"));
  const by = h("select", { "aria-label": "Answered by", onchange: onChange },
    [["", "Answered by all"], ["controller", "Controller"], ["stub", "Any stub"], ["unmatched", "Unmatched"], ["failed", "Failed"]]
      .map(([value, name]) => h("option", { value }, name)));
  const client = h("input", { class: "short", placeholder: "Client", "aria-label": "Client id contains", oninput: onChange });
  const broker = h("input", { class: "tiny", placeholder: "Sender", "aria-label": "Id of the sending broker or controller", inputmode: "numeric", oninput: onChange });
  const offered = { api: new Set(), by: new Set() };
  let offeredId = 0;
  const add = (/** @type {"api" | "by"} */ name, /** @type {Element} */ select, /** @type {string} */ value) => {
    if (offered[name].has(value) || offered[name].size >= 200) return;
    offered[name].add(value);
    select.append(h("option", { value }, value));
  };
  return {
    elements: [api, by, client, broker],
    /** The current filter. @returns {(line: Line) => boolean} */
    matching() {
      const [wantedApi, wantedBy, wantedClient, wantedBroker] = [api.value, by.value, client.value, broker.value.trim()];
      return (line) => (!wantedApi || line.api === wantedApi)
        && (!wantedBroker || String(line.brokerId) === wantedBroker)
        && (!wantedClient || (line.clientId ?? "").includes(wantedClient))
        && (!wantedBy || wantedBy === answeredBy(line) || (wantedBy === "stub" && isStubbed(line))
          || (wantedBy === "unmatched" && line.unmatched) || (wantedBy === "failed" && line.failure !== null));
    },
    /** Add the options of newer lines. @param {Line[]} lines */
    offer(lines) {
      for (let at = lines.length - 1; at >= 0 && lines[at].id > offeredId; at--) {
        add("api", api, lines[at].api);
        if (isStubbed(lines[at])) add("by", by, answeredBy(lines[at]));
      }
      offeredId = Math.max(offeredId, lines.at(-1)?.id ?? 0);
    },
  };
}

/** @param {Line} line @param {any} exchange */
function exchangeView(line, exchange) {
  const match = { api: line.api, ...(line.brokerId === null || line.brokerId === undefined ? {} : { brokerId: line.brokerId }) };
  const nearMisses = h("section", {});
  if (line.unmatched) showNearMisses(line, nearMisses).catch((problem) => fill(nearMisses, String(problem)));
  return [
    facts([
      ["Answered by", h("span", { class: `tag ${isStubbed(line) ? "accent" : "plain"}` }, answeredBy(line))],
      ["Why", line.reason], ["Error", line.error],
      ["Received", clockTime(line.receivedMs)], ["Took", `${milliseconds(line.tookUs)} ms`],
      ["Client", line.clientId], [line.forwarded ? "Forwarded by broker" : "Sender", line.brokerId], ["Principal", exchange.principal],
      ["Connection", line.connection], ["Correlation", exchange.correlationId], ["Node", line.node], ["Number", line.id],
    ]),
    exchange.failure && h("pre", { class: "failure" }, exchange.failure),
    nearMisses,
    h("h3", {}, "Request"), jsonView(exchange.request),
    h("h3", {}, "Response"), exchange.response ? jsonView(exchange.response) : h("p", { class: "note" }, "Not answered."),
    h("div", { class: "buttons" }, copyButton(exchange),
      h("button", { type: "button", onclick: () => draftStub({ match, actions: [{ injectError: "NOT_CONTROLLER" }], trigger: { once: true } }) }, "Make a stub of it")),
  ];
}

/** Which stubs came near, and in which conditions they failed. @param {Line} line @param {Element} place */
async function showNearMisses(line, place) {
  const { nearMisses } = await get(`v1/requests/${line.id}/near-misses`);
  fill(place, h("h3", {}, "Near misses"), nearMisses.length === 0 && h("p", { class: "note" }, "There is no stub that could have answered it."),
    nearMisses.map((/** @type {any} */ { stub, conditions }) => h("div", { class: "near-miss" }, h("b", {}, stub),
      conditions.map((/** @type {any} */ { field, expected, actual, held }) => h("div", { class: held ? "note" : "warn-text" },
        `${held ? "✓" : "✗"} ${field}: `, h("code", {}, JSON.stringify(expected)), !held && " but was ", !held && h("code", {}, JSON.stringify(actual)))))));
}
