// An answer as a sortable table or as JSON.
import { make } from "./dom.js";

const MOST_ROWS = 500;
const HOSTS = [["UP", "good"], ["DOWN", "bad"], ["UNREACHABLE", "warn"]];
const SERVICES = [["OK", "good"], ["WARNING", "warn"], ["CRITICAL", "bad"], ["UNKNOWN", "unknown"]];

const written = (value) => {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
};

const moment = (seconds) => {
  const date = new Date(seconds * 1000);
  const two = (number) => String(number).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ` +
    `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
};

function cell(name, value, about, states) {
  const column = about[name] ?? {};
  if (typeof value === "number") {
    const known = states && /^(hard_|last_)?state$/.test(name) ? states[value] : undefined;
    if (known) return make("td", {}, make("span", { class: `pill ${known[1]}` }, known[0]));
    if (column["x-type"] === "time") {
      return make("td", { title: String(value), class: "time" }, value > 0 ? moment(value) : "never");
    }
    return make("td", { class: "number" }, String(value));
  }
  if (Array.isArray(value) && value.every((one) => typeof one !== "object")) {
    return make("td", {}, value.join(", "));
  }
  const text = written(value);
  return make("td", text.length > 24 ? { class: "long" } : {}, text);
}

const compare = (one, other) => {
  if (typeof one === "number" && typeof other === "number") return one - other;
  return written(one).localeCompare(written(other), undefined, { numeric: true });
};

// The columns of a table: those that were asked for in their order, or all that a row has.
function namesOf(rows, wanted) {
  const found = new Set();
  for (const row of rows.slice(0, MOST_ROWS)) for (const name of Object.keys(row)) found.add(name);
  const first = wanted.filter((name) => found.has(name));
  return [...new Set([...first, ...found])];
}

// `about` are the schemas of columns by name, `wanted` the names in the order of the query.
export function table(rows, { about = {}, wanted = [], kind = "", label = "Answer" } = {}) {
  const names = namesOf(rows, wanted);
  const states = kind.startsWith("/host") ? HOSTS : kind.startsWith("/service") ? SERVICES : null;
  const body = make("tbody");
  const heads = new Map();
  let sorted = { name: "", down: false };

  const fill = () => {
    const shown = [...rows];
    if (sorted.name) {
      shown.sort((a, b) => compare(a[sorted.name], b[sorted.name]) * (sorted.down ? -1 : 1));
    }
    body.replaceChildren(...shown.slice(0, MOST_ROWS).map((row) =>
      make("tr", {}, ...names.map((name) => cell(name, row[name], about, states)))));
    for (const [name, head] of heads) {
      const here = name === sorted.name;
      head.setAttribute("aria-sort", here ? (sorted.down ? "descending" : "ascending") : "none");
      head.querySelector(".arrow").textContent = here ? (sorted.down ? "▼" : "▲") : "";
    }
  };

  for (const name of names) {
    const unit = about[name]?.["x-unit"];
    const sort = () => {
      sorted = { name, down: sorted.name === name && !sorted.down };
      fill();
    };
    heads.set(name, make("th", { scope: "col", title: about[name]?.description || null },
      make("button", { type: "button", onclick: sort }, name,
        unit ? make("span", { class: "unit" }, unit) : null, make("span", { class: "arrow" }))));
  }
  fill();
  const place = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    make("table", { class: "data" }, make("thead", {}, make("tr", {}, ...heads.values())), body));
  const more = rows.length > MOST_ROWS
    ? make("p", { class: "hint cut" }, `The first ${MOST_ROWS} of ${rows.length} rows; the download has all.`)
    : null;
  return make("div", {}, place, more);
}

// A single object as a table of two columns.
export const asRows = (value) =>
  Array.isArray(value)
    ? value.map((one) => (one !== null && typeof one === "object" && !Array.isArray(one) ? one : { value: one }))
    : Object.entries(value).map(([key, one]) => ({ key, value: one }));

export const asJson = (value) => make("pre", { tabindex: "0" }, JSON.stringify(value, null, 2));
