// @ts-check
/** Events of the cluster, newest first: what changed, when and why. */
import { get } from "./api.js";
import { clockTime, eachOf, h } from "./dom.js";

const SHOWN_MAX = 200;
/** @type {Record<string, string>} */
const TONES = { fenced: "bad", unfenced: "good", unregistered: "warn", "in controlled shutdown": "warn", on: "warn" };

/** Of everything, or of one broker. @param {() => number} [brokerId] called for each refresh */
export function timeline(brokerId) {
  const list = h("ol", { class: "timeline", tabindex: "0", "aria-label": "Events, newest first" });
  const none = h("p", { class: "note" }, "Nothing happened yet.");
  const render = eachOf(list, (/** @type {any} */ event) => String(event.id), (event) => ({ element: line(event, !brokerId), update() {} }));
  return {
    element: h("div", { class: "events" }, list, none),
    async refresh() {
      const { events } = await get(`v1/events?limit=${SHOWN_MAX}${brokerId ? `&brokerId=${brokerId()}` : ""}`);
      render(events.reverse());
      list.hidden = !events.length;
      none.hidden = events.length > 0;
    },
  };
}

/** @param {any} event @param {boolean} isNamed */
function line({ timeMs, subject, name, change, why }, isNamed) {
  const what = `${subject} ${name}`;
  const at = new Date(timeMs);
  return h("li", {}, h("time", { class: "time", datetime: at.toISOString(), title: at.toLocaleString() }, clockTime(timeMs)),
    h("div", {}, isNamed && (subject === "broker" ? h("a", { href: `#/brokers/${name}` }, what) : h("b", {}, what)), " ",
      h("span", { class: `tag ${TONES[change] ?? "plain"}` }, change), why && h("div", { class: "note" }, why)));
}
