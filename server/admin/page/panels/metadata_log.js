// @ts-check
/** The metadata log: records by offset, newest on top, decoded; older ones are fetched on request. */
import { get } from "../api.js";
import { Detail, copyButton, facts } from "../detail.js";
import { announce, clockTime, h, inWords, many, number, setText } from "../dom.js";
import { jsonView } from "../json_view.js";
import { VirtualList } from "../virtual_list.js";

const PAGE = 500;
const KEPT_MAX = 10_000;
/** Records that an idle controller writes all the time are hidden by default. */
const BUT_NO_OPS = "!NoOpRecord";

const COLUMNS = [
  { name: "Offset", kind: "id", cell: (/** @type {any} */ record) => number(record.offset) },
  { name: "Time", kind: "time", cell: (/** @type {any} */ record) => clockTime(record.timestampMs).slice(0, -4) },
  { name: "Epoch", kind: "num minor", cell: (/** @type {any} */ record) => record.epoch },
  { name: "Type", kind: "type", cell: (/** @type {any} */ record) => h("b", {}, inWords(record.type)) },
  { name: "Record", kind: "grow code minor", cell: (/** @type {any} */ record) => shortened(record) },
];

/** Names of topics by their ids, from the records that create them and from the topics. @type {Map<string, string>} */
const topicNames = new Map();

/** @param {string} text */
const withNames = (text) => text.replaceAll(/"topicId":"([^"]*)"/g, (whole, id) => (topicNames.has(id) ? `${whole},"topic":"${topicNames.get(id)}"` : whole));

/** @type {WeakMap<object, string>} */
const texts = new WeakMap();

/** @param {any} record */
function textOf(record) {
  let text = texts.get(record);
  if (text === undefined) texts.set(record, text = withNames(JSON.stringify(record.record ?? null)));
  return text;
}

/** @param {any} record */
const shortened = (record) => textOf(record).slice(0, 400).replaceAll(/"topicId":"[^"]*","topic":/g, "topic:").replaceAll('"', "");

export function metadataLogPanel() {
  /** @type {any[]} newest first */
  let records = [];
  let endOffset = 0;
  let isAll = false;
  let newest = -1;
  const search = h("input", { type: "search", placeholder: "Search  /", "aria-label": "Search records", oninput: () => draw() });
  const type = h("select", { "aria-label": "Type of record", onchange: () => draw() }, 
    h("option", { value: BUT_NO_OPS }, "All but NoOpRecord"), h("option", { value: "" }, "All types"));
  const from = h("input", { class: "short", inputmode: "numeric", placeholder: "Go to offset", "aria-label": "Go to offset",
    onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Enter" && goTo(Number(from.value)) });
  const older = h("button", { type: "button", onclick: () => loadOlder().catch(showError) }, "Older");
  const count = h("span", { class: "count", role: "status", "aria-live": "off" });
  const detail = new Detail("Record", () => { list.release(); list.focus(); });
  const list = new VirtualList({
    label: "Records", columns: COLUMNS, keyOf: (/** @type {any} */ record) => String(record.offset), onOpen: open,
    onActive: (/** @type {any} */ record) => detail.isOpen && open(record), empty: "No record, or none that matches.",
  });
  const types = new Set();

  function draw() {
    const words = search.value.trim().toLowerCase();
    const shown = records.filter((record) => (!type.value || (type.value === BUT_NO_OPS ? record.type !== "NoOpRecord" : record.type === type.value))
      && (!words || `${record.type} ${record.offset} ${textOf(record)}`.toLowerCase().includes(words)));
    list.show(shown, shown.findIndex((/** @type {any} */ record) => record.offset <= newest));
    newest = shown[0]?.offset ?? -1;
    for (const record of records) {
      if (types.has(record.type)) continue;
      types.add(record.type);
      type.append(h("option", { value: record.type }, record.type));
    }
    const oldest = records.at(-1)?.offset ?? 0;
    older.disabled = !hasOlder();
    setText(count, `${shown.length === records.length ? many(shown.length, "record") : `${number(shown.length)} of ${many(records.length, "record")}`}`
      + (records.length ? ` · offsets ${number(oldest)} to ${number(records[0].offset)} of ${number(endOffset)}` : ""));
  }

  async function load(/** @type {number} */ offset, /** @type {number} */ limit) {
    const page = await get(`v1/records?from=${offset}&limit=${limit}`);
    endOffset = page.endOffset;
    for (const { type: kind, record } of page.records) if (kind === "TopicRecord") topicNames.set(record.topicId, record.name);
    return page.records.reverse();
  }

  async function refresh() {
    if (!records.length) {
      for (const { topicId, name } of (await get("v1/topics")).topics) topicNames.set(topicId, name);
      records = await load(-PAGE, PAGE);
      return draw();
    }
    const fresh = await load(records[0].offset + 1, PAGE);
    records = [...fresh, ...records].slice(0, KEPT_MAX);
    draw();
  }

  /** Records that a snapshot replaced are gone, so the log may not begin at 0. */
  const hasOlder = () => records.length > 0 && records.length < KEPT_MAX && !isAll && records.at(-1).offset > 0;

  async function loadOlder() {
    const before = records.at(-1).offset;
    const offset = Math.max(0, before - PAGE);
    const found = (await load(offset, before - offset)).filter((/** @type {any} */ record) => record.offset < before);
    isAll = found.length === 0;
    records = [...records, ...found];
    draw();
  }

  async function goTo(/** @type {number} */ offset) {
    if (!Number.isInteger(offset) || offset < 0) return;
    try {
      while (hasOlder() && records.at(-1).offset > offset) await loadOlder();
      const at = list.items.findIndex((/** @type {any} */ record) => record.offset <= offset);
      if (at < 0) return;
      list.activate(at);
      list.focus();
    } catch (problem) {
      showError(problem);
    }
  }

  function open(/** @type {any} */ record) {
    detail.open(`${record.type} @${record.offset}`,
      facts([["Offset", number(record.offset)], ["Time", clockTime(record.timestampMs)], ["Topic", topicNames.get(record.record?.topicId)], ["Epoch", record.epoch], ["Type", record.type], ["Version", record.version]]),
      h("h3", {}, "Record"), jsonView(record.record), h("div", { class: "buttons" }, copyButton(record)));
  }

  const element = h("section", { class: "panel split", "aria-label": "Metadata log" },
    h("div", { class: "bar" }, search, type, from, older, h("span", { class: "space" }), count), list.element, detail.element);
  return { element, search, refresh, everyMs: 1000 };
}

/** @param {unknown} problem */
const showError = (problem) => announce(String(problem), "bad");
