// @ts-check
/** Decoded bodies as collapsible JSON: native disclosure elements work with keyboard and screen readers. */
import { h, many } from "./dom.js";

const OPEN_DEPTH = 2;
const CHILDREN_MAX = 200;

/**
 * @param {any} value
 * @param {string} [name]
 * @param {number} [depth]
 * @returns {HTMLElement}
 */
export function jsonView(value, name = "", depth = 0) {
  const key = name && h("span", { class: "key" }, name);
  if (value === null || typeof value !== "object") {
    const kind = value === null ? "null" : typeof value;
    const text = kind === "string" ? JSON.stringify(value) : String(value);
    return h("div", { class: "leaf" }, key, h("span", { class: `value ${kind}` }, text));
  }
  const entries = Object.entries(value);
  const size = Array.isArray(value) ? many(entries.length, "item") : many(entries.length, "field");
  if (!entries.length) {
    return h("div", { class: "leaf" }, key, h("span", { class: "value null" }, Array.isArray(value) ? "[]" : "{}"));
  }
  const inner = h("div", { class: "inner" });
  const show = () => {
    if (inner.childElementCount) return;
    for (const [child, of] of entries.slice(0, CHILDREN_MAX)) inner.append(jsonView(of, child, depth + 1));
    const left = entries.length - CHILDREN_MAX;
    if (left > 0) inner.append(h("div", { class: "note" }, `… and ${many(left, "more item")} (copy shows all)`));
  };
  const isOpen = depth < OPEN_DEPTH || entries.length <= 3;
  if (isOpen) show();
  return h("details", { open: isOpen, ontoggle: show },
    h("summary", {}, key, h("span", { class: "note" }, size)), inner);
}
