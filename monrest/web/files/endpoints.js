// All endpoints by chapters: what each takes and gives, and a form to try it. Each has an address of its own.
import { ask, root } from "./account.js";
import { enter, withQuery } from "./address.js";
import { answerOf, noticesOf } from "./builder.js";
import { make, notice, prose } from "./dom.js";
import { fieldsOf } from "./fields.js";
import { firstColumns, kindOf, namesFirst } from "./objects.js";
import { asJson, asRows, counted, table } from "./results.js";
import { offerLanguages } from "./snippets.js";

const place = document.getElementById("endpoints");
const JSON_TYPE = "application/json";
const slug = (title) => title.toLowerCase().replace(/\W+/g, "-");

let description = null;
// Names of objects that the address gives to the fields of paths.
let given = new Map();
const operations = [];

// ------------------------------------------------------------------ one endpoint

async function showAnswer(answer, where, columns, path, status, began) {
  const blob = await answer.blob();
  const text = await blob.text();
  const took = Math.round(performance.now() - began);
  status.textContent = `${answer.status} · ${took} ms`;
  let value;
  try { value = JSON.parse(text); } catch { value = undefined; }
  if (!answer.ok) {
    where.replaceChildren(notice("bad", `${answer.status} · ${value?.message ?? text}`, value?.description));
    return;
  }
  const notices = noticesOf(answer);
  if (value === undefined || value === null || typeof value !== "object") {
    const readable = /^text|json|yaml/.test(answer.headers.get("content-type") ?? "");
    where.replaceChildren(...notices, readable || !blob.size ? make("pre", { tabindex: "0" }, text)
      : make("a", { class: "button quiet", href: URL.createObjectURL(blob), download: "answer" }, "Download"));
    return;
  }
  const rows = asRows(value);
  where.replaceChildren(...notices,
    rows.length ? table(rows, { about: columns, path: kindOf(path) }) : make("p", { class: "muted" }, "No row."),
    make("details", {}, make("summary", {}, `As JSON: ${Array.isArray(value) ? counted(rows.length, "row") : "one object"}`), asJson(value)));
}

// What an answer has in it: its columns, and an example.
function outline(operation) {
  const content = operation.responses["200"].content[JSON_TYPE];
  const { columns } = answerOf(description, operation);
  const names = namesFirst(Object.keys(columns));
  const example = content?.examples?.demo;
  const about = (name) => ({ name, type: columns[name]["x-type"] ?? "", unit: columns[name]["x-unit"] ?? "", about: columns[name].description ?? "" });
  return [
    names.length ? make("details", {}, make("summary", {}, `Answer: ${counted(names.length, "column")}`),
      table(names.map(about), { wanted: ["name", "type", "unit", "about"], label: "Columns of the answer" })) : null,
    example ? make("details", {}, make("summary", {}, `Example: ${example.summary}`), asJson(example.value)) : null,
  ];
}

function form({ path, method, operation }) {
  const { asked, nodes } = fieldsOf(description, path, method, operation, given);
  const snippet = make("pre", { class: "snippet", tabindex: "0", "aria-label": "The request to copy" });
  const languages = make("div", { class: "switch", role: "group", "aria-label": "Language" });
  const status = make("span", { class: "muted", role: "status" });
  const answer = make("div");
  const request = () => {
    const { path: whole, pairs, body } = asked();
    const plain = withQuery(whole, pairs);
    return { method, root, path: plain, plain, url: root + plain, body, type: JSON_TYPE, format: "json" };
  };
  const write = offerLanguages(languages, snippet, request);
  const rewrite = () => { try { write(); } catch { /* JSON that is not whole yet */ } };
  const { columns } = answerOf(description, operation);
  const stream = !operation.responses["200"].content[JSON_TYPE] && method === "GET" && path === "/events";

  const send = async (event) => {
    event.preventDefault();
    status.textContent = "asking …";
    const began = performance.now();
    try {
      const { path: whole, body } = request();
      const headers = body ? { "Content-Type": JSON_TYPE } : {};
      await showAnswer(await ask(whole, { method, body: body || undefined, headers }), answer, columns, path, status, began);
    } catch (error) {
      status.textContent = "";
      answer.replaceChildren(notice("bad", "Nothing was sent, or nothing came back.", String(error.message ?? error)));
    }
  };
  return make("form", { class: "try", autocomplete: "off", oninput: rewrite, onsubmit: send }, ...nodes,
    make("div", { class: "row head" },
      stream ? make("p", { class: "hint" }, "A stream has no end: use one of these, or Live in the query.")
        : make("button", { type: "submit" }, method === "GET" ? "Run" : "Send"),
      status, make("span", { class: "grow" }), languages),
    snippet, answer);
}

function asQuery(path, operation) {
  const { list, columns } = answerOf(description, operation);
  return withQuery(path, [...(list ? [["columns", firstColumns(path, columns).join(",")]] : []), ["limit", "50"]]);
}

function fill(one) {
  if (one.filled) return;
  one.filled = true;
  const { path, method, operation } = one;
  const own = `#endpoints/${operation.operationId}`;
  const collection = method === "GET" && document.querySelector(`#collection option[value="${path}"]`);
  one.node.append(make("div", { class: "inside" },
    operation.description ? make("p", {}, ...prose(operation.description)) : null,
    make("p", { class: "ways" }, make("a", { href: own }, "Link to this endpoint"),
      collection ? make("a", { href: `#${asQuery(path, operation)}` }, "Open as a query") : null),
    form(one), ...outline(operation).filter(Boolean)));
}

function operationNode(path, method, operation) {
  const one = { path, method, operation, filled: false };
  one.node = make("details", { class: "operation", id: `endpoint-${operation.operationId}` },
    make("summary", {}, make("span", { class: `method ${method.toLowerCase()}` }, method), make("code", {}, path),
      make("span", { class: "about" }, operation.summary)));
  one.node.addEventListener("toggle", () => { if (one.node.open) fill(one); });
  // An endpoint that is opened by hand is in the address too.
  one.node.querySelector("summary").addEventListener("click", () => {
    if (!one.node.open) enter(`endpoints/${operation.operationId}`, { replace: true });
  });
  operations.push(one);
  return one.node;
}

// ------------------------------------------------------------------ all of them

function build() {
  const chapters = new Map(description.tags.map(({ name }) => [name, []]));
  for (const [path, item] of Object.entries(description.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      chapters.get(operation.tags[0]).push(operationNode(path, method.toUpperCase(), operation));
    }
  }
  const hint = make("p", { class: "hint", role: "status" });
  const sections = [...chapters].filter(([, nodes]) => nodes.length).map(([title, nodes]) =>
    make("section", { id: `chapter-${slug(title)}`, "aria-labelledby": `title-${slug(title)}` },
      make("h2", { id: `title-${slug(title)}` }, make("a", { href: `#endpoints/${slug(title)}` }, title)), ...nodes));
  const search = make("input", {
    type: "search", placeholder: "Path or purpose, such as downtime", "aria-label": "Find endpoints", spellcheck: "false",
    oninput: () => {
      const text = search.value.trim().toLowerCase();
      let count = 0;
      for (const { path, method, operation, node } of operations) {
        node.hidden = !`${method} ${path} ${operation.summary}`.toLowerCase().includes(text);
        count += !node.hidden;
      }
      for (const one of sections) one.hidden = !one.querySelector("details.operation:not([hidden])");
      hint.textContent = count === 1 ? "One endpoint." : `${count} endpoints.`;
    },
  });
  const contents = make("nav", { "aria-label": "Chapters" },
    ...[...chapters.keys()].map((title) => make("a", { href: `#endpoints/${slug(title)}` }, title)));
  place.replaceChildren(make("div", { class: "search" }, search, hint, contents),
    make("div", { class: "chapters" }, make("h1", { class: "title" }, "Endpoints"), ...sections));
  hint.textContent = `${operations.length} endpoints.`;
}

// Show all endpoints; `address` is what stands behind endpoints/, such as get_hosts or commands-hosts?name=web01.
export function showEndpoints(from, address) {
  if (!description) {
    description = from;
    build();
  }
  const [name, query = ""] = address.split(/\?(.*)/s);
  if (query) given = new URLSearchParams(query);
  for (const [key, value] of given) {
    for (const field of place.querySelectorAll(`[data-where="path"][name="${CSS.escape(key)}"]`)) field.value = value;
  }
  const one = document.getElementById(`endpoint-${name}`);
  if (one) one.open = true;
  (one ?? document.getElementById(`chapter-${name}`) ?? (address ? null : document.body))?.scrollIntoView();
}
