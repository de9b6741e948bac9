// @ts-check
/** Topics with their partitions, leaders and in-sync replicas; under-replicated ones are highlighted. */
import { get } from "../api.js";
import { h, many, number, setText } from "../dom.js";
import { VirtualList } from "../virtual_list.js";

const NO_LEADER = -1;

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
  if (partition) return h("span", { class: "under" }, `${topic.name}-${partition.partition}`);
  return [h("span", { class: "fold", "aria-hidden": "true" }, isOpen ? "▾" : "▸"), h("b", {}, topic.name),
    h("span", { class: "note" }, ` ${many(topic.partitions.length, "partition")}`)];
}

/** @param {any} partition */
const leaderView = (partition) => (isLeaderless(partition) ? h("span", { class: "tag bad" }, "none") : partition.leader);

/** @param {any} row */
function syncView({ topic, partition }) {
  if (partition) {
    return h("span", { class: isShort(partition) ? "tag warn" : "" }, `${partition.isr.join(" ")}${isShort(partition) ? ` (${partition.isr.length} of ${partition.replicas.length})` : ""}`);
  }
  const short = topic.partitions.filter(isShort).length;
  const leaderless = topic.partitions.filter(isLeaderless).length;
  if (leaderless) return h("span", { class: "tag bad" }, `${number(leaderless)} leaderless`);
  return short ? h("span", { class: "tag warn" }, `${number(short)} under-replicated`) : h("span", { class: "tag good" }, "all");
}

/** @param {any} row */
const rowKey = ({ topic, partition }) => `${topic.topicId ?? topic.name}${partition ? `-${partition.partition}` : ""}`;

export function topicsPanel() {
  /** @type {any[]} */
  let topics = [];
  const open = new Set();
  const search = h("input", { type: "search", placeholder: "Search  /", "aria-label": "Search topics", oninput: () => draw() });
  const short = h("input", { type: "checkbox", id: "short-only", onchange: () => draw() });
  const count = h("span", { class: "count", role: "status", "aria-live": "off" });
  const list = new VirtualList({
    label: "Topics", columns: COLUMNS, keyOf: rowKey, empty: "No topic, or none that matches.",
    onOpen: (/** @type {any} */ { topic }) => { if (!open.delete(topic.name)) open.add(topic.name); draw(); },
    rowClass: (/** @type {any} */ { topic, partition }) => classOf(partition ? [partition] : topic.partitions),
  });

  function draw() {
    const words = search.value.trim().toLowerCase();
    const rows = [];
    for (const topic of topics) {
      if (words && !topic.name.toLowerCase().includes(words)) continue;
      const partitions = short.checked ? topic.partitions.filter((/** @type {any} */ one) => isShort(one) || isLeaderless(one)) : topic.partitions;
      if (short.checked && !partitions.length) continue;
      const isOpen = open.has(topic.name);
      rows.push({ topic, isOpen });
      if (isOpen) rows.push(...partitions.map((/** @type {any} */ partition) => ({ topic, partition })));
    }
    list.show(rows);
    const all = topics.flatMap((topic) => topic.partitions);
    setText(count, [many(topics.length, "topic"), many(all.length, "partition"), `${number(all.filter(isShort).length)} under-replicated`,
      `${number(all.filter(isLeaderless).length)} leaderless`].join(" · "));
  }

  async function refresh() {
    ({ topics } = await get("v1/topics"));
    draw();
  }

  const element = h("section", { class: "panel", "aria-label": "Topics" },
    h("div", { class: "bar" }, search, h("label", { class: "check", for: "short-only" }, short, "Only under-replicated or leaderless"),
      h("span", { class: "space" }), count), list.element);
  return { element, search, refresh, everyMs: 2000 };
}

/** @param {any[]} partitions */
function classOf(partitions) {
  if (partitions.some(isLeaderless)) return "bad";
  return partitions.some(isShort) ? "warn" : "";
}
