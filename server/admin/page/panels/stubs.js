// @ts-check
/** The active stubs with their counts, and an editor for a stub as JSON. */
import { Problem, get, send } from "../api.js";
import { jsonView } from "../json_view.js";
import { announce, eachOf, fill, h, many, number, setText } from "../dom.js";

const EXAMPLE = { match: { api: "BrokerHeartbeat", brokerId: 1 }, trigger: { times: 2 }, actions: [{ injectError: "NOT_CONTROLLER" }] };

/** @type {any} */
let draft = null;

/** Open the stubs panel with this stub in the editor. @param {any} stub */
export function draftStub(stub) {
  draft = stub;
  location.hash = "#/stubs";
}

/** A match, trigger or action as text: `api BrokerHeartbeat · where wantFence true`. @param {any} tree @returns {string} */
function inWords(tree, between = " · ") {
  return Object.entries(tree ?? {}).map(([name, value]) => {
    if (value === true && between === " · ") return name;
    const isPlain = value !== null && typeof value === "object" && !Array.isArray(value);
    return `${name} ${isPlain ? inWords(value, ", ") : Array.isArray(value) ? value.join(" or ") : value}`;
  }).join(between);
}

export function stubsPanel() {
  const list = h("ul", { class: "cards", "aria-label": "Active stubs" });
  const count = h("span", { class: "count", role: "status", "aria-live": "off" });
  const scenarios = h("div", { class: "scenarios" });
  const recordings = h("div", { class: "scenarios" });
  const strict = h("button", { type: "button", role: "switch", class: "switch", "aria-checked": "false", "aria-label": "Strict: mark requests that no stub matches",
    onclick: () => attempt(send("PATCH", "v1/settings", { strict: strict.getAttribute("aria-checked") !== "true" }), refresh) });
  const search = h("input", { type: "search", placeholder: "Search  /", "aria-label": "Search stubs", oninput: () => draw() });
  const editor = makeEditor(refresh, (id) => stubs.some((stub) => stub.id === id));
  /** @type {any[]} */
  let stubs = [];
  const render = eachOf(list, (/** @type {any} */ stub) => stub.id, (stub) => stubCard(stub, refresh, (one) => editor.begin(one)));

  function draw() {
    const words = search.value.trim().toLowerCase();
    render(stubs.filter((stub) => !words || JSON.stringify(stub).toLowerCase().includes(words)));
    setText(count, stubs.length ? `${many(stubs.length, "stub")} · ${number(stubs.filter((stub) => !stub.calls).length)} not called yet`
      : "No stubs: the controller answers everything itself.");
  }

  async function refresh() {
    if (draft) {
      editor.begin(draft);
      draft = null;
    }
    ({ stubs } = await get("v1/stubs"));
    draw();
    const { scenarios: states } = await get("v1/scenarios");
    const { strict: isStrict } = await get("v1/settings");
    strict.setAttribute("aria-checked", String(isStrict));
    const { recordings: recorded } = await get("v1/recordings");
    fill(recordings, recorded.length > 0 && h("h3", {}, "Recordings"), recorded.map((/** @type {any} */ one) => h("span", { class: "tag plain" },
      `${one.id}: ${one.upstream} at ${one.bootstrap}, ${many(one.requests, "request")}${one.running ? "" : `, ended${one.ended ? `: ${one.ended}` : ""}`}`)));
    fill(scenarios, states.length > 0 && h("h3", {}, "Scenarios"),
      states.map((/** @type {any} */ { name, state }) => h("span", { class: "tag plain" }, `${name}: ${state}`)));
  }

  const element = h("section", { class: "panel columns", "aria-label": "Stubs" },
    h("div", { class: "column" }, h("div", { class: "bar" }, search, strict, h("span", { title: "The controller answers a request that no stub matches, and it counts as unmatched." }, "strict"),
      h("span", { class: "space" }), count), recordings, scenarios, list),
    editor.element);
  return { element, search, refresh, everyMs: 1000, keys: { n: () => editor.begin(EXAMPLE) } };
}

/**
 * @param {any} stub
 * @param {() => Promise<void>} refresh
 * @param {(stub: any) => void} onEdit
 */
function stubCard(stub, refresh, onEdit) {
  let held = stub;
  const name = h("b", {});
  const calls = h("span", { class: "calls" });
  const match = h("code", {});
  const trigger = h("span", { class: "note" });
  const actions = h("div", { class: "actions" });
  const toggle = h("button", { type: "button", role: "switch", class: "switch", onclick: () =>
    attempt(send("PATCH", `v1/stubs/${encodeURIComponent(held.id)}`, { enabled: !held.enabled }), refresh) });
  const remove = h("button", { type: "button", class: "quiet danger", title: "Delete",
    onclick: () => attempt(send("DELETE", `v1/stubs/${encodeURIComponent(held.id)}`), refresh) }, "Delete");
  const edit = h("button", { type: "button", class: "quiet", onclick: () => onEdit(held) }, "Edit");
  const body = h("div", { class: "inner" });
  const all = h("details", { ontoggle: () => fill(body, jsonView(held)) }, h("summary", {}, "JSON"), body);
  const element = h("li", { class: "card" },
    h("div", { class: "line" }, toggle, name, h("span", { class: "space" }), calls), match, actions,
    h("div", { class: "line" }, trigger, h("span", { class: "space" }), edit, remove), all);
  return {
    element,
    update(/** @type {any} */ now) {
      held = now;
      setText(name, now.name || now.id);
      setText(calls, `called ${many(now.calls, "time")}`);
      calls.classList.toggle("some", Boolean(now.calls));
      setText(match, inWords(now.match) || "every request");
      setText(trigger, [inWords(now.trigger ?? { everyTime: true }), now.priority && `priority ${now.priority}`,
        now.scenario && `in ${now.scenario.name}`].filter(Boolean).join(" · "));
      if (actions.childElementCount !== now.actions.length) fill(actions, now.actions.map(() => h("span", { class: "tag accent" })));
      now.actions.forEach((/** @type {any} */ action, /** @type {number} */ at) => setText(actions.children[at], inWords(action)));
      toggle.setAttribute("aria-checked", String(now.enabled !== false));
      toggle.setAttribute("aria-label", `Stub ${now.name || now.id} enabled`);
      remove.setAttribute("aria-label", `Delete stub ${now.name || now.id}`);
      edit.setAttribute("aria-label", `Edit stub ${now.name || now.id}`);
    },
  };
}

/** @param {Promise<any>} doing @param {() => Promise<void>} refresh */
export async function attempt(doing, refresh) {
  try {
    await doing;
    await refresh();
  } catch (problem) {
    announce(String(problem), "bad");
  }
}

/** @param {() => Promise<void>} refresh @param {(id: string) => boolean} isThere */
function makeEditor(refresh, isThere) {
  const text = h("textarea", { id: "stub-json", spellcheck: "false", rows: "16", "aria-describedby": "stub-errors" });
  const errors = h("div", { id: "stub-errors", class: "error", role: "alert" });
  text.value = JSON.stringify(EXAMPLE, null, 2);

  async function save() {
    fill(errors);
    text.removeAttribute("aria-invalid");
    try {
      const stub = JSON.parse(text.value);
      if (isThere(stub?.id)) await send("PUT", `v1/stubs/${encodeURIComponent(stub.id)}`, stub);
      else await send("POST", "v1/stubs", stub);
      announce("The stub is active.");
      await refresh();
    } catch (problem) {
      text.setAttribute("aria-invalid", "true");
      fill(errors, ...whatIsWrong(problem));
    }
  }

  const element = h("form", { class: "column editor", "aria-label": "Write a stub", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); save(); } },
    h("label", { for: "stub-json" }, "A stub as JSON"), text, errors,
    h("div", { class: "buttons" }, h("button", { class: "main" }, "Activate"), h("span", { class: "note" }, "Ctrl+Enter")));
  text.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); save(); }
  });
  return {
    element,
    begin(/** @type {any} */ stub) {
      text.value = JSON.stringify(stub, null, 2);
      fill(errors);
      text.focus();
    },
  };
}

/** @param {unknown} problem @returns {import("../dom.js").Child[]} */
export function whatIsWrong(problem) {
  if (!(problem instanceof Problem)) return [String(problem)];
  if (!problem.fields.length) return [problem.message];
  return problem.fields.map(({ field, detail }) => h("div", {}, field && h("code", {}, field), " ", detail));
}
