// The builder of queries: from a form to a request and back.
import { ask, root } from "./account.js";
import { enter, withQuery } from "./address.js";
import { choice, make, notice } from "./dom.js";
import { follow } from "./live.js";
import { besides, firstColumns, isLog } from "./objects.js";
import { asJson, asRows, counted, table } from "./results.js";
import { offerLanguages } from "./snippets.js";

const { failed: FAILED, warnings: WARNINGS } = document.documentElement.dataset;
const $ = (id) => document.getElementById(id);

const OPERATORS = [
  ["eq", "="], ["ne", "≠"], ["regex", "matches"], ["nregex", "matches not"],
  ["sregex", "matches, case"], ["snregex", "matches not, case"],
  ["gt", ">"], ["lt", "<"], ["gte", "≥ / contains"], ["lte", "≤ / contains not"], ["notin", "not in list"],
];
const FORMATS = [
  ["json", "JSON", "application/json"], ["csv", "CSV", "text/csv"],
  ["ndjson", "NDJSON", "application/x-ndjson"],
  ["xls", "Excel", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"],
  ["text", "Text", ""], ["wrapped_json", "Wrapped JSON", ""],
];
const SPECIAL = new Set(["columns", "sort", "limit", "offset", "q", "backends"]);

const columns = [];
let collections = new Map();
let view = "table";
let shown = null;
let running = null;
let living = null;
// The request whose answer is shown.
let answered = null;
let writeSnippet = () => {};

// ------------------------------------------------------------------ what there is to ask

// The columns of an answer by name, and whether it is a list of rows.
export function answerOf(document, operation) {
  let schema = operation.responses["200"].content["application/json"]?.schema ?? {};
  schema = schema.anyOf?.[0] ?? schema;
  const list = schema.type === "array";
  schema = schema.items ?? schema;
  return { list, columns: document.components.schemas[schema.$ref?.split("/").pop()]?.properties ?? {} };
}

function readCollections(description) {
  collections = new Map();
  for (const [path, item] of Object.entries(description.paths)) {
    const names = (item.get?.parameters ?? []).map((one) => one.$ref?.split("/").pop());
    if (path.includes("{") || !names.includes("filter") || path === "/") continue;
    const operation = item.get;
    if (!operation.responses["200"].content["application/json"]) continue;
    collections.set(path, {
      title: operation.summary, chapter: operation.tags[0], ...answerOf(description, operation),
    });
  }
}

function offerCollections() {
  const groups = new Map();
  for (const [path, one] of collections) {
    if (!groups.has(one.chapter)) groups.set(one.chapter, []);
    groups.get(one.chapter).push(make("option", { value: path }, path));
  }
  const order = [...groups.keys()].sort((a, b) => (b === "Collections") - (a === "Collections"));
  $("collection").replaceChildren(
    ...order.map((chapter) => make("optgroup", { label: chapter }, ...groups.get(chapter))));
}

function offerColumns() {
  const { columns: known = {}, title = "" } = collections.get($("collection").value) ?? {};
  $("collection-hint").textContent = title;
  $("column-names").replaceChildren(...Object.entries(known).map(([name, one]) =>
    make("option", { value: name },
      [one["x-type"], one["x-unit"], one.description].filter(Boolean).join(" · "))));
}

// ------------------------------------------------------------------ the form

function showColumns() {
  $("columns").replaceChildren(...columns.map((name, at) =>
    make("li", {}, make("button", {
      type: "button", "aria-label": `Remove ${name}`,
      onclick: () => { columns.splice(at, 1); showColumns(); $("column").focus(); },
    }, name, make("span", { "aria-hidden": "true" }, "×")))));
  $("column").placeholder = columns.length ? "one more" : "all columns";
  refresh();
}

// A comma separates columns, but not inside of a function.
function split(text) {
  const found = [""];
  let depth = 0;
  for (const letter of text) {
    if (letter === "(") depth += 1;
    if (letter === ")") depth -= 1;
    if (letter === "," && depth === 0) found.push("");
    else found[found.length - 1] += letter;
  }
  return found.map((one) => one.trim()).filter(Boolean);
}

function addColumns(text) {
  for (const name of split(text)) if (!columns.includes(name)) columns.push(name);
  $("column").value = "";
  showColumns();
}

function line(kind, place, ...parts) {
  const found = make("div", { class: `line ${kind}` }, ...parts,
    make("button", {
      type: "button", class: "quiet", "aria-label": "Remove",
      onclick: () => { found.remove(); refresh(); $(place === "filters" ? "add-filter" : "add-sort").focus(); },
    }, "×"));
  $(place).querySelector(".lines").append(found);
  return found;
}

function addFilter(column = "", operator = "eq", value = "") {
  const select = make("select", { name: "operator", "aria-label": "Operator" },
    ...OPERATORS.map(([name, text]) => make("option", { value: name, selected: name === operator }, text)));
  return line("filter", "filters",
    make("input", { name: "column", "aria-label": "Column", list: "column-names", placeholder: "column", spellcheck: "false", value: column }),
    select,
    make("input", { name: "value", "aria-label": "Value", placeholder: "value", spellcheck: "false", value }));
}

function addSort(column = "", down = false) {
  return line("sort", "sorts",
    make("input", { name: "column", "aria-label": "Sort key", list: "column-names", placeholder: "column", spellcheck: "false", value: column }),
    make("select", { name: "direction", "aria-label": "Direction" },
      make("option", { value: "", selected: !down }, "ascending"),
      make("option", { value: "-", selected: down }, "descending")));
}

const valuesOf = (place) => [...$(place).querySelectorAll(".line")].map((one) =>
  Object.fromEntries([...one.querySelectorAll("input, select")].map((field) => [field.name, field.value.trim()])));

// ------------------------------------------------------------------ form to request and back

function pairs() {
  const waiting = split($("column").value);
  const chosen = [...columns, ...waiting.filter((name) => !columns.includes(name))];
  const found = [];
  if (chosen.length) found.push(["columns", chosen.join(",")]);
  for (const { column, operator, value } of valuesOf("filters")) {
    if (column) found.push([operator === "eq" ? column : `${column}[${operator}]`, value]);
  }
  if ($("q").value.trim()) found.push(["q", $("q").value.trim()]);
  const keys = valuesOf("sorts").filter(({ column }) => column).map(({ column, direction }) => direction + column);
  if (keys.length) found.push(["sort", keys.join(",")]);
  for (const name of ["limit", "offset", "backends"]) {
    if ($(name).value.trim()) found.push([name, $(name).value.trim()]);
  }
  return found;
}

// What the form asks; `more` are columns that the table needs besides.
function request(more = []) {
  const path = $("collection").value;
  const asked = pairs().map(([name, value]) => [name, name === "columns" ? [value, ...more].join(",") : value]);
  const plain = withQuery(path, asked);
  const [format, , accept] = FORMATS.find(([name]) => name === $("format").value);
  const whole = (format === "json" ? "" : `/${format}`) + plain;
  return { method: "GET", root, path: whole, url: root + whole, format, type: accept, plain };
}

const chosenColumns = () => split(pairs().find(([name]) => name === "columns")?.[1] ?? "");

// The form has changed: what stands below it follows, and an answer to another question is marked as such.
function refresh() {
  if (!$("collection").value) return;
  writeSnippet();
  const stale = answered !== null && request().path !== answered;
  $("answer").classList.toggle("stale", stale);
  $("stale").hidden = !stale;
}

// Begin a new question to a collection: with its first columns, newest first where it is a log.
function choose(path) {
  $("collection").value = path;
  columns.length = 0;
  for (const place of ["filters", "sorts"]) $(place).querySelector(".lines").replaceChildren();
  for (const name of ["q", "offset"]) $(name).value = "";
  const { list, columns: known } = collections.get(path);
  if (list) columns.push(...firstColumns(path, known));
  if (isLog(path)) addSort("time", true);
  offerColumns();
  showColumns();
}

// Set the form to what an address says, such as /hosts?state[ne]=0.
function load(address) {
  const [path, query = ""] = address.split(/\?(.*)/s);
  if (!collections.has(path)) return false;
  $("collection").value = path;
  columns.length = 0;
  for (const place of ["filters", "sorts"]) $(place).querySelector(".lines").replaceChildren();
  for (const name of ["q", "limit", "offset", "backends"]) $(name).value = "";
  for (const [name, value] of new URLSearchParams(query)) {
    if (name === "columns") columns.push(...split(value));
    else if (name === "sort") {
      for (const key of split(value)) addSort(key.replace(/^-/, ""), key.startsWith("-"));
    } else if (SPECIAL.has(name)) $(name).value = value;
    else {
      const [, column, operator] = /^(.*?)(?:\[(\w+)\])?$/s.exec(name);
      addFilter(column, operator ?? "eq", value);
    }
  }
  offerColumns();
  showColumns();
  return true;
}

// ------------------------------------------------------------------ the answer

function draw() {
  if (!shown) return;
  const place = $("answer");
  const notices = shown.notices;
  if (shown.text !== undefined) {
    place.replaceChildren(...notices, make("pre", { tabindex: "0" }, shown.text));
    return;
  }
  const rows = asRows(shown.whole);
  const body = view === "json" ? asJson(shown.value)
    : rows.length ? table(rows, shown.look) : make("p", { class: "muted" }, "No row.");
  place.replaceChildren(...notices, body);
}

function fail(title, text) {
  shown = null;
  answered = null;
  $("download").hidden = true;
  $("answer").replaceChildren(notice("bad", title, text));
}

const list = (header) => header.split(",").map((one) => one.trim()).filter(Boolean);

export function noticesOf(answer) {
  const found = [];
  const failed = answer.headers.get(FAILED);
  if (failed) {
    const names = list(failed);
    found.push(notice("warn", names.length === 1 ? `The site ${names[0]} is down.` : `The sites ${names.join(", ")} are down.`,
      "These are the rows of the others."));
  }
  const warnings = answer.headers.get(WARNINGS);
  for (const one of warnings?.split("; ") ?? []) found.push(notice("warn", decodeURIComponent(one)));
  return found;
}

async function take(answer, asked, path, more) {
  const type = answer.headers.get("content-type") ?? "";
  const notices = noticesOf(answer);
  const blob = await answer.blob();
  if (!answer.ok) {
    let found;
    try { found = JSON.parse(await blob.text()); } catch { found = { message: await blob.text() }; }
    fail(`${answer.status} · ${found.message}`, found.description);
    return "";
  }
  if (asked.format === "xls") {
    offerDownload(blob, asked.format);
    shown = { text: "The workbook is ready: use Download.", notices };
    draw();
    return `${blob.size} bytes`;
  }
  const text = await blob.text();
  if (!type.startsWith("application/json")) {
    offerDownload(blob, asked.format);
    shown = { text, notices };
    draw();
    return "";
  }
  const whole = JSON.parse(text);
  const value = more.length && Array.isArray(whole) ? whole.map((row) => without(row, more)) : whole;
  offerDownload(more.length ? new Blob([JSON.stringify(value)], { type: "application/json" }) : blob, asked.format);
  const wanted = columns.map((one) => one.replace(/^.*(?::| as )\s*/s, ""));
  const about = collections.get(path).columns;
  shown = { value, whole, notices, look: { about, wanted, hidden: more, path, label: `Answer of ${path}` } };
  if (asked.format === "wrapped_json") view = "json";
  showViews();
  draw();
  return Array.isArray(value) ? counted(value.length, "row") : "one object";
}

const without = (row, names) => Object.fromEntries(Object.entries(row).filter(([name]) => !names.includes(name)));

function offerDownload(blob, format) {
  const link = $("download");
  if (link.href) URL.revokeObjectURL(link.href);
  link.href = URL.createObjectURL(blob);
  link.download = `answer.${{ xls: "xlsx", text: "txt", wrapped_json: "json" }[format] ?? format}`;
  link.hidden = false;
}

// Ask; `replace`: the address does not become a new entry of the history.
export async function run({ replace = false } = {}) {
  running?.abort();
  const turn = running = new AbortController();
  const asked = request();
  const path = $("collection").value;
  const more = asked.format === "json" ? besides(path, chosenColumns()) : [];
  if (!$("panel-query").hidden) enter(asked.plain, { replace });
  $("run").disabled = true;
  $("status").textContent = "asking …";
  const began = performance.now();
  try {
    const accept = asked.format === "json" ? { Accept: "application/json" } : { Accept: "*/*" };
    const answer = await ask(request(more).path, { signal: turn.signal, headers: accept });
    if (answer.status === 401) document.dispatchEvent(new Event("login-wanted"));
    const what = await take(answer, asked, path, more);
    const took = Math.round(performance.now() - began);
    $("status").textContent = [answer.status, what, `${took} ms`].filter(Boolean).join(" · ");
  } catch (error) {
    if (error.name === "AbortError") return;
    $("status").textContent = "";
    fail("The service does not answer.", String(error.message ?? error));
  } finally {
    if (running === turn) $("run").disabled = false;
  }
  answered = asked.path;
  refresh();
}

// Run the query on a click. Where the answer stands below the form, as on a phone, it comes into view.
async function runAndShow() {
  await run();
  if (matchMedia("(max-width: 60rem)").matches) $("answer-card").scrollIntoView();
}

// ------------------------------------------------------------------ live

function rest() {
  living?.abort();
  living = null;
  $("live").setAttribute("aria-pressed", "false");
}

async function live() {
  const turn = living = new AbortController();
  $("live").setAttribute("aria-pressed", "true");
  run();
  const refused = await follow($("backends").value.trim(), () => run({ replace: true }), turn.signal);
  if (living !== turn) return;
  rest();
  if (refused) fail("Not live any more.", refused);
}

// ------------------------------------------------------------------ switches and the rest

const showViews = () =>
  choice($("views"), [["table", "Table"], ["json", "JSON"]], () => view, (name) => { view = name; draw(); });

async function offerSites() {
  const answer = await ask("/sites?columns=id,name");
  if (!answer.ok) return;
  const sites = await answer.json();
  $("site-names").replaceChildren(...sites.map(({ id, name }) => make("option", { value: id }, name)));
}

export function begin(description) {
  readCollections(description);
  offerCollections();
  $("format").replaceChildren(...FORMATS.map(([name, text]) => make("option", { value: name }, text)));
  showViews();
  choose(collections.has("/hosts") ? "/hosts" : $("collection").value);
  writeSnippet = offerLanguages($("languages"), $("snippet"), request);
  $("collection").addEventListener("change", () => choose($("collection").value));
  $("add-column").addEventListener("click", () => { addColumns($("column").value); $("column").focus(); });
  $("column").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.ctrlKey && $("column").value.trim()) {
      event.preventDefault();
      addColumns($("column").value);
    } else if (event.key === "Backspace" && !$("column").value && columns.length) {
      columns.pop();
      showColumns();
    }
  });
  $("add-filter").addEventListener("click", () => addFilter().querySelector("input").focus());
  $("add-sort").addEventListener("click", () => addSort().querySelector("input").focus());
  $("query").addEventListener("input", refresh);
  $("query").addEventListener("submit", (event) => { event.preventDefault(); runAndShow(); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.ctrlKey && !$("panel-query").hidden) runAndShow();
  });
  $("live").addEventListener("click", () => { if (living) rest(); else live(); });
  $("backends").addEventListener("change", () => { if (living) { rest(); live(); } });
  $("copy").addEventListener("click", async () => {
    await navigator.clipboard.writeText($("snippet").textContent);
    $("copy").textContent = "Copied";
    setTimeout(() => { $("copy").textContent = "Copy"; }, 1500);
  });
  refresh();
}

// Show the question of an address, such as /hosts?state[ne]=0, and its answer if the user is logged in.
export function show(address, signedIn) {
  rest();
  if (load(address)) {
    if (signedIn) run({ replace: true });
  } else fail("No such collection.", `${address.split("?")[0]}: choose one of the list, or look at all endpoints.`);
}

// The address of the question that the form asks.
export const question = () => request().plain;

// Another user from now on.
export function changeAccount() {
  rest();
  refresh();
  offerSites();
  run({ replace: true });
}
