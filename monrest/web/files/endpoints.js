// All endpoints: Swagger UI with our account, our theme, more languages and answers as tables.
import { credentials, root } from "./account.js";
import { make, notice } from "./dom.js";
import { asRows, table } from "./results.js";
import { LANGUAGES } from "./snippets.js";

const files = new URL(document.body.dataset.files + "/", location.href);
const place = document.getElementById("endpoints");
const MOST = 100;

function loaded(element) {
  return new Promise((resolve, reject) => {
    element.addEventListener("load", resolve);
    element.addEventListener("error", reject);
    document.head.append(element);
  });
}

const address = (name) => new URL(name, files).href;

// What a generator of Swagger UI gets, as our own want it.
function asked(request) {
  const found = request.toJS();
  const body = typeof found.body === "string" ? found.body : found.body ? JSON.stringify(found.body) : "";
  return {
    method: found.method, url: found.url, root, path: found.url.slice(root.length), body,
    type: found.headers?.["Content-Type"] ?? "application/json", format: "json",
  };
}

// Lists of objects get a table beside the JSON.
const tables = (system) => ({
  wrapComponents: {
    responseBody: (Original) => {
      const React = system.React;
      return class AsTable extends React.Component {
        constructor(props) { super(props); this.place = React.createRef(); }
        componentDidMount() { this.draw(); }
        componentDidUpdate(before) { if (before.content !== this.props.content) this.draw(); }
        draw() {
          let value;
          try { value = JSON.parse(this.props.content); } catch { value = null; }
          const node = this.place.current;
          if (value === null || typeof value !== "object") { node.replaceChildren(); return; }
          const rows = asRows(value);
          node.replaceChildren(...(rows.length ? [make("details", { class: "as-table", open: true },
            make("summary", {}, `As a table: ${rows.length} ${rows.length === 1 ? "row" : "rows"}`), table(rows))] : []));
        }
        render() {
          return React.createElement("div", {},
            React.createElement("div", { ref: this.place }),
            React.createElement(Original, this.props));
        }
      };
    },
  },
});

const languages = () => ({
  fn: Object.fromEntries(Object.entries(LANGUAGES).map(([name, write]) =>
    [`requestSnippetGenerator_${name}`, (request) => write(asked(request))])),
});

// Swagger UI reads a whole document again for each form that it opens, which takes seconds with all endpoints: it gets
// the operations that are wanted, and what these refer to.
function part(description, wanted) {
  const { jsonSchemaDialect, ...rest } = description;
  const paths = {};
  let count = 0;
  for (const [path, item] of Object.entries(description.paths)) {
    const kept = Object.entries(item).filter(([, one]) => wanted(path, one) && (count += 1) <= MOST);
    if (kept.length) paths[path] = Object.fromEntries(kept);
  }
  const components = { securitySchemes: description.components.securitySchemes };
  const waiting = [paths];
  while (waiting.length) {
    for (const [, kind, name] of JSON.stringify(waiting.pop()).matchAll(/"#\/components\/(\w+)\/([^"]+)"/g)) {
      components[kind] ??= {};
      if (components[kind][name]) continue;
      components[kind][name] = description.components[kind][name];
      waiting.push(components[kind][name]);
    }
  }
  const servers = [{ url: root }];
  const used = new Set(Object.values(paths).flatMap(Object.values).flatMap((one) => one.tags));
  const tags = rest.tags.filter(({ name }) => used.has(name));
  return { count, spec: { ...rest, servers, tags, paths, components } };
}

function show(target, spec) {
  target.replaceChildren(make("div", { id: "swagger" }));
  window.SwaggerUIBundle({
    spec,
    dom_id: "#swagger",
    deepLinking: false,
    docExpansion: "list",
    defaultModelsExpandDepth: -1,
    defaultModelRendering: "example",
    displayRequestDuration: true,
    tryItOutEnabled: true,
    validatorUrl: null,
    syntaxHighlight: { activated: false },
    requestSnippetsEnabled: true,
    requestSnippets: {
      generators: Object.fromEntries(Object.keys(LANGUAGES).map((name) => [name, { title: name, syntax: "bash" }])),
      defaultExpanded: true,
      languages: Object.keys(LANGUAGES),
    },
    plugins: [tables, languages],
    requestInterceptor: (request) => {
      Object.assign(request.headers, credentials(request.method));
      return request;
    },
  });
}

export async function showEndpoints(description) {
  if (!document.documentElement.dataset.swagger) {
    place.replaceChildren(notice("warn", "The list of endpoints needs Swagger UI, which is not installed here.",
      "pip install 'monrest[docs]', then start the daemon again. The query builder and /openapi.json work without it."));
    return;
  }
  try {
    await loaded(make("link", { rel: "stylesheet", href: address("swagger-ui.css") }));
    // Ours come last, so that they win.
    document.head.append(document.querySelector('link[href$="explorer.css"]'));
    await loaded(make("script", { src: address("swagger-ui-bundle.js") }));
  } catch {
    place.replaceChildren(notice("bad", "The files of Swagger UI cannot be loaded."));
    return;
  }
  const target = make("div");
  const hint = make("p", { class: "hint", role: "status" });
  let pause;
  const draw = () => {
    const text = search.value.trim().toLowerCase();
    const wanted = text.length > 1
      ? (path, one) => `${path} ${one.summary}`.toLowerCase().includes(text)
      : (path, one) => one.tags[0] === chapter.value;
    const { count, spec } = part(description, wanted);
    // What holds for all endpoints stands above the first chapter only.
    target.className = text || chapter.selectedIndex ? "found" : "";
    hint.textContent = count > MOST ? `The first ${MOST} of ${count} endpoints: write more of what you look for.`
      : count === 1 ? "One endpoint." : `${count} endpoints.`;
    show(target, spec);
  };
  const chapter = make("select", { "aria-label": "Chapter", onchange: () => { search.value = ""; draw(); } },
    ...description.tags.map(({ name }) => make("option", { value: name }, name)));
  const search = make("input", {
    type: "search", placeholder: "Path or purpose, such as downtime", "aria-label": "Find endpoints", spellcheck: "false",
    oninput: () => {
      clearTimeout(pause);
      pause = setTimeout(draw, 250);
    },
  });
  place.replaceChildren(make("div", { class: "search" }, chapter, search, hint), target);
  draw();
}
