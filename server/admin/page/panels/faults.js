// @ts-check
/** Faults that are switched on and off: a form for each kind, from the controller's own description. */
import { get, send } from "../api.js";
import { announce, eachOf, fill, h, many, number, setText } from "../dom.js";
import { attempt, whatIsWrong } from "./stubs.js";

const SCOPES = [
  { name: "brokerId", label: "Broker", number: true },
  { name: "clientId", label: "Client id" },
  { name: "connection", label: "Connection", number: true },
  { name: "node", label: "Node", number: true },
];

export function faultsPanel() {
  const list = h("ul", { class: "cards", "aria-label": "Faults" });
  const count = h("span", { class: "count", role: "status", "aria-live": "off" });
  const plan = h("div", { class: "plan", hidden: true });
  const kindList = h("ul", { class: "kinds", "aria-label": "Kinds of fault", onkeydown: moveAmongKinds });
  const search = h("input", { type: "search", placeholder: "Search kinds  /", "aria-label": "Search kinds of fault", oninput: () => drawKinds() });
  const render = eachOf(list, (/** @type {any} */ fault) => fault.id, (fault) => faultCard(fault, refresh));
  /** @type {any[]} */
  let kinds = [];

  function drawKinds() {
    const words = search.value.trim().toLowerCase();
    const shown = kinds.filter((kind) => !words || `${kind.name} ${kind.summary}`.toLowerCase().includes(words));
    fill(kindList, shown.map((kind) => kindItem(kind, refresh)));
    if (!shown.length) kindList.append(h("li", { class: "empty" }, "No kind matches."));
  }

  async function refresh() {
    if (!kinds.length) {
      ({ kinds } = await get("v1/faults/kinds"));
      drawKinds();
    }
    const { faults } = await get("v1/faults");
    render(faults);
    drawPlan((await get("v1/plan")).plan);
    setText(count, faults.length ? `${many(faults.filter((/** @type {any} */ one) => one.enabled).length, "fault")} on, ${number(faults.filter((/** @type {any} */ one) => !one.fired).length)} not fired yet`
      : "No faults: choose a kind and switch it on.");
  }

  const steps = h("ol", { "aria-label": "The plan's steps" });
  const stop = h("button", { type: "button", class: "quiet danger", onclick: () => attempt(send("DELETE", "v1/plan"), refresh) }, "Stop the plan");
  plan.append(h("div", { class: "line" }, h("h3", {}, "Plan"), h("span", { class: "space" }), stop), steps);

  function drawPlan(/** @type {any[]} */ now) {
    plan.hidden = !now.length;
    while (steps.childElementCount > now.length) steps.lastElementChild?.remove();
    while (steps.childElementCount < now.length) steps.append(h("li", {}));
    now.forEach((step, at) => {
      setText(steps.children[at], stepInWords(step));
      steps.children[at].className = step.state;
    });
    stop.hidden = now.every((step) => step.state === "over");
  }

  const element = h("section", { class: "panel columns", "aria-label": "Faults" },
    h("div", { class: "column" }, h("div", { class: "bar" }, h("h2", {}, "On and off"), h("span", { class: "space" }), count), plan, list),
    h("div", { class: "column editor" }, h("div", { class: "bar" }, search), kindList));
  return { element, search, refresh, everyMs: 1000 };
}

/** @param {any} step @returns {string} */
function stepInWords({ at, duration, ramp, fault, state, fired }) {
  const times = [`at ${number(at ?? 0)} ms`, duration && `for ${number(duration)} ms`, ramp && `growing for ${number(ramp)} ms`].filter(Boolean).join(" ");
  return `${fault.name ?? fault.kind.replaceAll("_", " ")} ${times}: ${state}${state === "waiting" ? "" : `, fired ${many(fired ?? 0, "time")}`}`;
}

/** @param {any} kind @param {() => Promise<void>} refresh */
function kindItem(kind, refresh) {
  /** @type {HTMLElement | null} */
  let form = null;
  const button = h("button", { type: "button", class: "kind", "aria-expanded": "false", onclick: () => {
    form = form ? (form.remove(), null) : faultForm(kind, refresh);
    if (form) item.append(form);
    item.classList.toggle("open", Boolean(form));
    button.setAttribute("aria-expanded", String(Boolean(form)));
  } }, h("b", {}, kind.name.replaceAll("_", " ")), h("span", { class: "note" }, kind.summary));
  const item = h("li", {}, button);
  return item;
}

/** @param {KeyboardEvent} event */
function moveAmongKinds(event) {
  const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
  const target = /** @type {HTMLElement} */ (event.target);
  if (!step || !target.matches(".kind")) return;
  const buttons = /** @type {HTMLElement[]} */ ([.../** @type {HTMLElement} */ (event.currentTarget).querySelectorAll(".kind")]);
  buttons[(buttons.indexOf(target) + step + buttons.length) % buttons.length].focus();
  event.preventDefault();
}

/** @param {any} fault @param {() => Promise<void>} refresh */
function faultCard(fault, refresh) {
  let held = fault;
  const path = `v1/faults/${encodeURIComponent(fault.id)}`;
  const fired = h("span", { class: "calls" });
  const what = h("code", {});
  const error = h("div", { class: "error" });
  const name = fault.name ?? fault.kind.replaceAll("_", " ");
  const toggle = h("button", { type: "button", role: "switch", class: "switch", "aria-label": `Fault ${name} on`,
    onclick: () => attempt(send("PATCH", path, { enabled: !held.enabled }), refresh) });
  const element = h("li", { class: "card" },
    h("div", { class: "line" }, toggle, h("b", {}, name), h("span", { class: "space" }), fired,
      h("button", { type: "button", class: "quiet danger", "aria-label": `Delete fault ${name}`, onclick: () => attempt(send("DELETE", path), refresh) }, "Delete")),
    what, error);
  return {
    element,
    update(/** @type {any} */ now) {
      held = now;
      toggle.setAttribute("aria-checked", String(now.enabled));
      setText(fired, `fired ${many(now.fired ?? 0, "time")}`);
      fired.classList.toggle("some", Boolean(now.fired));
      setText(error, now.error ?? "");
      const given = { ...now.match, ...now.params, ...(now.toxicity !== undefined && now.toxicity !== 1 ? { toxicity: now.toxicity } : {}) };
      setText(what, Object.entries(given).map(([key, value]) => `${key} ${typeof value === "object" ? JSON.stringify(value) : value}`).join(" · ") || "everywhere");
    },
  };
}

/** @param {any} kind @param {() => Promise<void>} refresh */
function faultForm(kind, refresh) {
  const errors = h("div", { class: "error", role: "alert" });
  const fields = kind.parameters.map((/** @type {any} */ parameter) => ({ parameter, input: inputOf(kind, parameter) }));
  const scopes = SCOPES.map((scope) => ({ scope, input: h("input", { id: `scope-${kind.name}-${scope.name}`, inputmode: scope.number ? "numeric" : "text", placeholder: "any" }) }));
  const toxicity = h("input", { id: `toxicity-${kind.name}`, type: "number", min: "0", max: "1", step: "any", value: "1" });

  async function on(/** @type {Event} */ event) {
    event.preventDefault();
    fill(errors);
    try {
      const params = Object.fromEntries(fields.map((/** @type {any} */ { parameter, input }) => [parameter.name, valueOf(parameter, input)])
        .filter((/** @type {any[]} */ [, value]) => value !== undefined));
      const match = Object.fromEntries(scopes.filter(({ input }) => input.value.trim())
        .map(({ scope, input }) => [scope.name, scope.number ? Number(input.value) : input.value.trim()]));
      await send("POST", "v1/faults", { kind: kind.name, params, ...(kind.preset ? {} : { match, toxicity: Number(toxicity.value) }) });
      announce(`${kind.name} is on.`);
      await refresh();
    } catch (problem) {
      fill(errors, ...whatIsWrong(problem));
    }
  }

  return h("form", { class: "fault-form", "aria-label": `Switch on ${kind.name}`, onsubmit: on },
    kind.reaction && h("p", { class: "note" }, h("b", {}, "A real broker: "), kind.reaction),
    fields.map((/** @type {any} */ { parameter, input }) => field(input, parameter.name, parameter.help, parameter.required)),
    !kind.preset && h("fieldset", {}, h("legend", {}, "Only for"), scopes.map(({ scope, input }) => field(input, scope.label)),
      field(toxicity, "Toxicity", "share of the connections that are affected")),
    errors, h("button", { class: "main" }, "Switch it on"));
}

/** @param {any} input @param {string} label @param {string} [note] @param {boolean} [isRequired] */
function field(input, label, note, isRequired) {
  return h("div", { class: "field" }, h("label", { for: input.id }, label, isRequired && h("span", { class: "note" }, " required")), input, note && h("span", { class: "note" }, note));
}

/** @param {any} kind @param {any} parameter */
function inputOf(kind, { name, type, choices, default: preset, required }) {
  const id = `param-${kind.name}-${name}`;
  if (type === "bool") return h("input", { id, type: "checkbox", checked: preset === true });
  if (choices?.length) {
    return h("select", { id }, !required && preset === null && h("option", { value: "" }, "–"),
      choices.map((/** @type {any} */ choice) => h("option", { value: choice, selected: choice === preset }, choice)));
  }
  const isNumber = type === "int" || type === "float";
  return h("input", { id, type: isNumber ? "number" : "text", step: type === "int" ? "1" : "any", value: type === "json" && preset !== null ? JSON.stringify(preset) : preset ?? "", required: Boolean(required), spellcheck: "false" });
}

/** @param {any} parameter @param {any} input */
function valueOf({ type }, input) {
  if (type === "bool") return input.checked;
  if (input.value === "") return undefined;
  if (type === "json") return JSON.parse(input.value);
  return type === "int" || type === "float" ? Number(input.value) : input.value;
}
