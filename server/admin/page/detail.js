// @ts-check
/** The side pane with the details of one item; on a phone it covers the list. */
import { announce, fill, h, printable, setText } from "./dom.js";

export class Detail {
  /** @param {string} label @param {() => void} onClose */
  constructor(label, onClose) {
    this.title = h("h2", {});
    this.body = h("div", { class: "detail-body" });
    this.onClose = onClose;
    this.element = h("aside", { class: "detail", "aria-label": label, tabindex: "-1", hidden: true },
      h("header", {}, this.title,
        h("button", { type: "button", class: "quiet", "aria-label": "Close", title: "Close (Escape)", onclick: () => this.close() }, "✕")),
      this.body);
    this.element.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Escape") { event.stopPropagation(); this.close(); }
    });
  }

  get isOpen() {
    return !this.element.hidden;
  }

  /** @param {string} title @param {...(import("./dom.js").Child | import("./dom.js").Child[])} children */
  open(title, ...children) {
    setText(this.title, title);
    fill(this.body, ...children);
    this.body.scrollTop = 0;
    this.element.hidden = false;
  }

  close() {
    if (!this.isOpen) return;
    this.element.hidden = true;
    this.onClose();
  }
}

/** A list of terms and values. @param {[string, import("./dom.js").Child][]} pairs */
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs
    .filter(([, value]) => value !== null && value !== undefined && value !== "")
    .flatMap(([term, value]) => [h("dt", {}, term), h("dd", {}, value)]));
}

/** A button that copies a value as JSON. @param {any} value */
export function copyButton(value) {
  return h("button", { type: "button", onclick: async () => {
    await navigator.clipboard.writeText(printable(JSON.stringify(value, null, 2)));
    announce("Copied.");
  } }, "Copy JSON");
}
