// @ts-check
/** Topics, and the partitions of those that are open, with leaders and in-sync replicas; under-replicated ones are highlighted. */
import { get } from "../api.js";
import { h, many, number, setText } from "../dom.js";
import { VirtualList } from "../virtual_list.js";

const NO_LEADER = -1;
/** Open topics whose partitions are requested. */
const OPEN_MAX = 50;

/** @param {any} partition */
const isShort = (partition) => partition.isr.length < partition.replicas.length;
/** @param {any} partition */
const isLeaderless = (partition) => partition.leader === NO_LEADER;

const COLUMNS = [
  { name: "Topic", kind: "grow", cell: nameView },
  { name: "Leader", kind: "num", cell: (/** @type {any} */ row) => (row.partition ? leaderView(row.partition) : "") },
  { name: "In sync", kind: "by", cell: syncView },
  { name: "Replicas", kind: "client minor", cell: (/** @type {any} */ row) => (row.partition ? row.partition.replicas.join(" ") : "") },
  { name: "Epoch", kind: "num minor", cell: (/** @type {any} */ row) => row.partition?.leaderEpoch ?? "" },
];

/** @param {any} row */
function nameView({ topic, partition, isOpen }) {
  if (partition) return h("span", { class: "under" }, h("span", { class: "note" }, `${topic.name}-`), partition.partition);
  return [h("span", { class: "fold", "aria-hidden": "true" }, isOpen ? "▾" : "▸"), h("b", { title: topic.name }, topic.name),
    h("span", { class: "note" }, ` ${many(topic.partitions, "partition")}`)];
}

/** @param {any} partition */
const leaderView = (partition) => (isLeaderless(partition) ? h("span", { class: "tag bad" }, "none") : partition.leader);

/** @param {any} row */
function syncView({ topic, partition }) {
  if (partition) {
    return h("span", { class: isShort(partition) ? "tag warn" : "" }, `${partition.isr.join(" ")}${isShort(partition) ? ` (${partition.isr.length} of ${partition.replicas.length})` : ""}`);
  }
  const { underReplicated, leaderless } = topic;
  if (leaderless) return h("span", { class: "tag bad" }, `${number(leaderless)} leaderless`);
  return underReplicated ? h("span", { class: "tag warn" }, `${number(underReplicated)} under-replicated`) : h("span", { class: "tag good" }, "all");
}

/** @param {any} row */
const rowKey = ({ topic, partition }) => `${topic.topicId ?? topic.name}${partition ? `-${partition.partition}` : ""}`;

export function topicsPanel() {
  /** @type {any[]} */
  let topics = [];
  /** @type {Map<string, any[]>} Partitions of open topics. */
  let partitionsOf = new Map();
  const open = new Set();
  const search = h("input", { type: "search", placeholder: "Search  /", "aria-label": "Search topics", oninput: () => draw() });
  const short = h("input", { type: "checkbox", id: "short-only", onchange: () => draw() });
  const count = h("span", { class: "count", role: "status", "aria-live": "off" });
  const list = new VirtualList({
    label: "Topics", columns: COLUMNS, keyOf: rowKey, empty: "No topic, or none that matches.",
    onOpen: (/** @type {any} */ { topic }) => { if (!open.delete(topic.name)) open.add(topic.name); draw(); return refreshOpen(); },
    rowClass: (/** @type {any} */ { topic, partition }) =>
      partition ? classOf(isShort(partition), isLeaderless(partition)) : classOf(topic.underReplicated, topic.leaderless),
  });

  function draw() {
    const words = search.value.trim().toLowerCase();
    const rows = [];
    for (const topic of topics) {
      if (words && !topic.name.toLowerCase().includes(words)) continue;
      if (short.checked && !topic.underReplicated && !topic.leaderless) continue;
      const isOpen = open.has(topic.name);
      rows.push({ topic, isOpen });
      const partitions = isOpen ? partitionsOf.get(topic.name) ?? [] : [];
      const shown = short.checked ? partitions.filter((/** @type {any} */ one) => isShort(one) || isLeaderless(one)) : partitions;
      rows.push(...shown.map((/** @type {any} */ partition) => ({ topic, partition })));
    }
    list.show(rows);
    const sum = (/** @type {string} */ key) => topics.reduce((total, topic) => total + topic[key], 0);
    setText(count, [many(topics.length, "topic"), many(sum("partitions"), "partition"), `${number(sum("underReplicated"))} under-replicated`,
      `${number(sum("leaderless"))} leaderless`].join(" · "));
  }

  async function refresh() {
    ({ topics } = await get("v1/topics/overview"));
    await refreshOpen();
  }

  async function refreshOpen() {
    const names = topics.map(({ name }) => name).filter((name) => open.has(name)).slice(0, OPEN_MAX);
    const query = new URLSearchParams(names.map((name) => ["name", name]));
    const found = names.length ? (await get(`v1/topics?${query}`)).topics : [];
    partitionsOf = new Map(found.map((/** @type {any} */ topic) => [topic.name, topic.partitions]));
    draw();
  }

  const element = h("section", { class: "panel", "aria-label": "Topics" },
    h("div", { class: "bar" }, search, h("label", { class: "check", for: "short-only" }, short, "Only under-replicated or leaderless"),
      h("span", { class: "space" }), count), list.element);
  return { element, search, refresh, everyMs: 2000 };
}

/** @param {unknown} short @param {unknown} leaderless */
function classOf(short, leaderless) {
  if (leaderless) return "bad";
  return short ? "warn" : "";
}
