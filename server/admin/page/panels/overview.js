// @ts-check
/** The cluster at a glance: rate and latency, what happened, every broker as a square, the quorum, the clock. */
import { get, send } from "../api.js";
import { Chart } from "../chart.js";
import { facts } from "../detail.js";
import { announce, clockTime, eachOf, fill, h, many, milliseconds, number, setText } from "../dom.js";
import { seen } from "../requests_seen.js";
import { timeline } from "../timeline.js";
import { stateOf } from "./brokers.js";

const STEPS_MS = [100, 1000, 9000];
/** More brokers are drawn as squares without a number. */
const FEW = 120;
const SQUARES_MAX = 5000;

export function overviewPanel() {
  const rate = new Chart("Requests", "per second");
  const latency = new Chart("Response time", "ms, without Fetch, which waits for records", milliseconds);
  const map = brokerMap();
  const quorum = quorumCard();
  const clock = clockCard();
  const apis = apiCard();
  const events = timeline();

  /** @param {number} nowMs */
  function drawCharts(nowMs) {
    apis.show();
    const now = Math.floor(Math.max(nowMs, seen.latestMs) / 1000) - 1;
    const seconds = [...seen.seconds.values()];
    rate.show([
      { name: "controller", color: "--accent", fill: true, values: filled(seconds, "controller", now) },
      { name: "stubs", color: "--fill-amber", fill: true, values: filled(seconds, "stub", now) },
    ], now);
    const timed = seconds.filter((second) => second.took.length);
    latency.show([
      { name: "p50", color: "--accent", values: quantiles(timed, 0.5) },
      { name: "p99", color: "--fill-amber", values: quantiles(timed, 0.99) },
    ], now);
  }

  async function refresh() {
    const [{ brokers }, state, time] = await Promise.all([get("v1/brokers"), get("v1/quorum"), get("v1/clock")]);
    map.show(brokers);
    quorum.show(state);
    clock.show(time);
    drawCharts(time.nowMs);
    await events.refresh();
  }

  const element = h("section", { class: "panel overview", "aria-label": "Overview" },
    h("div", { class: "charts" }, rate.element, latency.element,
      h("section", { class: "box", "aria-label": "Events" }, h("header", {}, h("h2", {}, "Events"), h("span", { class: "note" }, "newest first")), events.element)),
    h("div", { class: "cards-row" }, map.element, apis.element, h("div", { class: "stack" }, quorum.element, clock.element)));
  return { element, refresh, everyMs: 2000 };
}

/** @param {import("../requests_seen.js").Second[]} seconds @param {"controller" | "stub"} name @param {number} now */
function filled(seconds, name, now) {
  const values = new Map();
  const first = Math.min(...seconds.map(({ second }) => second));
  for (let second = first; second <= now; second++) values.set(second, seen.seconds.get(second)?.[name] ?? 0);
  return values;
}

/** @param {import("../requests_seen.js").Second[]} seconds @param {number} part */
function quantiles(seconds, part) {
  return new Map(seconds.map(({ second, took }) => [second, quantile(took, part)]));
}

/** @param {number[]} values @param {number} part */
function quantile(values, part) {
  const sorted = values.slice().sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
}

/** Every broker as a button that opens it; arrow keys move among them. */
function brokerMap() {
  const counts = h("div", { class: "legend" });
  const squares = h("div", { class: "map", role: "group", onkeydown: moveAmongSquares });
  const beyond = h("span", { class: "note" });
  const element = h("section", { class: "box wide", "aria-label": "Brokers by state" }, h("header", {}, h("h2", {}, "Brokers"), counts),
    squares, h("p", {}, h("a", { href: "#/brokers" }, "All brokers"), beyond));
  const render = eachOf(squares, (/** @type {any} */ broker) => String(broker.brokerId), ({ brokerId }) => {
    const button = h("button", { type: "button", tabindex: "-1", onclick: () => { location.hash = `#/brokers/${brokerId}`; } }, brokerId);
    return { element: button, update(now) {
      const { name, tone } = stateOf(now);
      button.className = tone;
      button.title = `Broker ${brokerId}: ${name}`;
      button.setAttribute("aria-label", button.title);
    } };
  });
  return {
    element,
    show(/** @type {any[]} */ brokers) {
      const states = [["running", "fill-green"], ["fenced", "fill-red"], ["shutting down", "fill-amber"]].map(([name, color]) =>
        ({ name, color, count: number(brokers.filter((broker) => stateOf(broker).name === name).length) }));
      fill(counts, states.map(({ name, color, count }) => h("span", {}, h("i", { class: `swatch ${color}` }), `${name} `, h("b", {}, count))));
      squares.setAttribute("aria-label", `${many(brokers.length, "broker")}: ${states.map(({ name, count }) => `${count} ${name}`).join(", ")}`);
      squares.classList.toggle("dense", brokers.length > FEW);
      render(brokers.slice(0, SQUARES_MAX));
      setText(beyond, brokers.length > SQUARES_MAX ? ` and ${number(brokers.length - SQUARES_MAX)} more` : "");
      if (!squares.querySelector("[tabindex='0']")) squares.firstElementChild?.setAttribute("tabindex", "0");
    },
  };
}

/** @param {KeyboardEvent} event */
function moveAmongSquares(event) {
  const squares = /** @type {HTMLElement} */ (event.currentTarget);
  const all = /** @type {HTMLElement[]} */ ([...squares.children]);
  const at = all.indexOf(/** @type {HTMLElement} */ (event.target));
  const below = all.findIndex((one) => one.offsetTop > all[0].offsetTop);
  const across = below < 0 ? all.length : below;
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, ArrowDown: at + across, ArrowUp: at - across, Home: 0, End: all.length - 1 }[event.key];
  if (to === undefined || at < 0) return;
  event.preventDefault();
  if (!all[to]) return;
  all[at].tabIndex = -1;
  all[to].tabIndex = 0;
  all[to].focus();
}

/** Rate and latency of each API over the last minute. */
function apiCard() {
  const rows = h("tbody", {});
  const render = tableRows(rows, ({ api, rate, p50, p99, refused }) => [api, number(rate), milliseconds(p50), milliseconds(p99), number(refused)], ({ api }) => api);
  const element = h("section", { class: "box", "aria-label": "Requests by API" }, h("header", {}, h("h2", {}, "By API"), h("span", { class: "note" }, "the last minute")),
    h("table", {}, tableHead("API", "per s", "p50 ms", "p99 ms", "refused"), rows));
  return {
    element,
    show() {
      /** @type {Map<string, {took: number[], refused: number}>} */
      const byApi = new Map();
      for (let at = seen.lines.length - 1; at >= 0 && seen.lines[at].answeredMs > seen.latestMs - 60_000; at--) {
        const line = seen.lines[at];
        const of = byApi.get(line.api) ?? { took: [], refused: 0 };
        of.took.push(line.tookUs);
        if (line.error) of.refused += 1;
        byApi.set(line.api, of);
      }
      const oldestMs = Math.max(seen.latestMs - 60_000, seen.lines[0]?.answeredMs ?? 0);
      const seconds = Math.max(1, (seen.latestMs - oldestMs) / 1000);
      render([...byApi].map(([api, { took, refused }]) => ({ api, refused, rate: took.length / seconds, p50: quantile(took, 0.5), p99: quantile(took, 0.99) }))
        .sort((one, other) => other.rate - one.rate).slice(0, 12));
    },
  };
}

/** @param {...string} names */
const tableHead = (...names) => h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, name))));

/** @param {Element} body @param {(item: any) => (string | number)[]} cellsOf @param {(item: any) => string} keyOf */
function tableRows(body, cellsOf, keyOf) {
  return eachOf(body, keyOf, (item) => {
    const cells = cellsOf(item).map(() => h("td", {}));
    return { element: h("tr", {}, cells), update: (now) => cellsOf(now).forEach((value, at) => setText(cells[at], String(value))) };
  });
}

function quorumCard() {
  const summary = h("div", {});
  const nodes = h("tbody", {});
  const element = h("section", { class: "box", "aria-label": "Quorum" }, h("header", {}, h("h2", {}, "Quorum")), summary,
    h("table", {}, tableHead("Node", "Role", "Epoch", "Log end"), nodes));
  const render = tableRows(nodes, (node) => [node.nodeId, node.role, number(node.epoch), number(node.logEndOffset)], (node) => String(node.nodeId));
  return {
    element,
    show(/** @type {any} */ quorum) {
      fill(summary, facts([["Leader", quorum.leaderId ?? "none"], ["Epoch", number(quorum.epoch)], ["High watermark", number(quorum.highWatermark)],
        ["Observers", number((quorum.observers ?? []).length)]]));
      render(quorum.nodes ?? []);
    },
  };
}

function clockCard() {
  const now = h("output", { class: "time-now" });
  const note = h("p", { class: "note" });
  const ms = h("input", { class: "short", id: "advance-ms", type: "number", min: "1", step: "1", value: "1000", required: true });
  const advance = async (/** @type {number} */ by) => {
    try {
      await send("POST", "v1/clock/advance", { ms: by });
      announce(`The clock was advanced by ${number(by)} ms.`);
      show(await get("v1/clock"));
    } catch (problem) {
      announce(String(problem), "bad");
    }
  };
  const form = h("form", { class: "buttons", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); advance(Number(ms.value)); } },
    h("label", { for: "advance-ms" }, "Advance by"), ms, "ms", h("button", { class: "main" }, "Advance"),
    STEPS_MS.map((step) => h("button", { type: "button", onclick: () => advance(step) }, `+${step >= 1000 ? `${step / 1000} s` : `${step} ms`}`)));
  function show(/** @type {any} */ clock) {
    setText(now, clockTime(clock.nowMs));
    setText(note, clock.virtual ? "A virtual clock: it only moves when it is advanced." : "The system clock.");
    form.hidden = !clock.virtual;
  }
  return { element: h("section", { class: "box", "aria-label": "Clock" }, h("header", {}, h("h2", {}, "Clock")), now, note, form), show };
}
