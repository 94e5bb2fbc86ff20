// An answer as a sortable table or as JSON.
import { make } from "./dom.js";
import { linkOf, namesFirst, stateOf, wayOn } from "./objects.js";

const MOST_ROWS = 500;
const LONG = 24;
const UNITS = [[31557600, "y"], [86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
const REFRESH = 20000;

const written = (value) => {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
};

const exact = (date) => {
  const two = (number) => String(number).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ` +
    `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
};

// How long ago a date is, such as "5 min ago" or "in 2 h".
function relative(date) {
  const gap = (Date.now() - date) / 1000;
  const [size, unit] = UNITS.find(([seconds]) => Math.abs(gap) >= seconds) ?? [];
  if (!size) return "now";
  const text = `${Math.floor(Math.abs(gap) / size)} ${unit}`;
  return gap < 0 ? `in ${text}` : `${text} ago`;
}

setInterval(() => {
  for (const one of document.querySelectorAll("time")) one.textContent = relative(new Date(one.dateTime));
}, REFRESH);

function timeCell(seconds) {
  if (seconds <= 0) return make("td", { class: "time", title: String(seconds) }, "never");
  const date = new Date(seconds * 1000);
  return make("td", { class: "time", title: `${exact(date)} · ${seconds}` },
    make("time", { datetime: date.toISOString() }, relative(date)));
}

function cell(name, row, about, path) {
  const value = row[name];
  const state = stateOf(name, row, path);
  if (state) {
    const [word = "–", colour = "none"] = state;
    return make("td", { title: String(value) }, make("span", { class: `pill ${colour}` }, word));
  }
  if (typeof value === "number") {
    return about[name]?.["x-type"] === "time" ? timeCell(value) : make("td", { class: "number" }, String(value));
  }
  const plain = Array.isArray(value) && value.every((one) => typeof one !== "object");
  const text = plain ? value.join(", ") : written(value);
  const address = linkOf(name, row, path);
  const outside = address && !address.startsWith("#");
  const content = address
    ? make("a", { href: address, rel: outside ? "noreferrer" : null, target: outside ? "_blank" : null }, text) : text;
  return make("td", text.length > LONG ? { class: "long", title: text } : {}, content);
}

const links = (row, path) =>
  make("td", { class: "links" }, ...wayOn(row, path).map(([text, address]) => make("a", { href: address }, text)));

const compare = (one, other) => {
  if (typeof one === "number" && typeof other === "number") return one - other;
  return written(one).localeCompare(written(other), undefined, { numeric: true });
};

// The columns of a table: those that were asked for in their order, or all that a row has, names first.
function namesOf(rows, wanted, hidden) {
  const found = new Set();
  for (const row of rows.slice(0, MOST_ROWS)) for (const name of Object.keys(row)) found.add(name);
  const first = wanted.filter((name) => found.has(name));
  return [...new Set([...first, ...namesFirst(found)])].filter((name) => !hidden.includes(name));
}

// `about` are the schemas of columns by name, `wanted` the names in the order of the query, `hidden` those that
// the query did not select, `path` the collection. A click on a long text shows the whole of it.
export function table(rows, { about = {}, wanted = [], hidden = [], path = "", label = "Answer" } = {}) {
  const names = namesOf(rows, wanted, hidden);
  const body = make("tbody", { onclick: ({ target }) => target.closest("td.long")?.classList.toggle("whole") });
  const heads = new Map();
  // Where objects lead stands behind their names and their state.
  const lead = rows.some((row) => wayOn(row, path).length);
  const at = 1 + Math.max(...["name", "host_name", "description", "state"].map((name) => names.indexOf(name)));
  const withLinks = (cells, more) => (lead ? [...cells.slice(0, at), more(), ...cells.slice(at)] : cells);
  let sorted = { name: "", down: false };

  const fill = () => {
    const shown = [...rows];
    if (sorted.name) {
      shown.sort((a, b) => compare(a[sorted.name], b[sorted.name]) * (sorted.down ? -1 : 1));
    }
    body.replaceChildren(...shown.slice(0, MOST_ROWS).map((row) =>
      make("tr", {}, ...withLinks(names.map((name) => cell(name, row, about, path)), () => links(row, path)))));
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
  const head = make("tr", {}, ...withLinks([...heads.values()], () => make("th", { scope: "col" }, "Go to")));
  const place = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    make("table", { class: "data" }, make("thead", {}, head), body));
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

export const counted = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
