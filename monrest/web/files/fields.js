// The form of an endpoint: one field for each parameter, by its schema.
import { make, prose } from "./dom.js";

// What every list or every command takes beside its own.
const COMMON = new Set(["background", "force", "headers", "pretty", "test_only", "timeout"]);
const SECRET = new Set(["password", "secret", "token"]);

const FREE = "further fields";

const typesOf = (schema) => [schema.type ?? []].flat();

function input(name, schema, more) {
  const types = typesOf(schema);
  if (schema.enum) {
    const flag = schema.enum.includes(true);
    const words = flag ? [["1", "yes"], ["0", "no"]] : schema.enum.map((word) => [word, word]);
    return make("select", more, make("option", { value: "" }, ""),
      ...words.map(([value, text]) => make("option", { value }, text)));
  }
  if (types.includes("object") && name !== "filter") return make("textarea", { ...more, rows: 3, spellcheck: "false", placeholder: "{ }" });
  if (types.length && types.every((one) => ["integer", "number"].includes(one))) {
    return make("input", { ...more, type: "number", step: types.includes("number") ? "any" : 1, min: schema.minimum, max: schema.maximum });
  }
  const placeholder = name === "filter" ? "state[ne]=0&name[regex]=^web" : types.includes("array") ? "one, two" : schema.examples?.join(", ") ?? null;
  return make("input", { ...more, type: SECRET.has(name) ? "password" : "text", placeholder, spellcheck: "false", autocomplete: "off" });
}

// The value of a field as JSON has it; throws a text about what is no JSON.
function valueOf(name, schema, text) {
  const types = typesOf(schema);
  if (schema.enum?.includes(true)) return Number(text);
  if (types.includes("object")) {
    try { return JSON.parse(text); } catch (error) { throw new Error(`${name}: expected JSON (${error.message})`); }
  }
  if (types.length && types.every((one) => ["integer", "number"].includes(one))) return Number(text);
  if (types.includes("array")) return text.trim().startsWith("[") ? JSON.parse(text) : text.split(",").map((one) => one.trim());
  return text;
}

// `one` has name, where it is sent (path, query or body), schema, description and required.
function field(one, id, given) {
  const hint = [one.description, one.schema["x-limit"] && !one.description?.includes("Limit:") ? `Limit: ${one.schema["x-limit"]}.` : ""]
    .filter(Boolean).join(" ");
  const control = input(one.name, one.schema, {
    id, name: one.name, required: one.required, "aria-describedby": hint ? `${id}-hint` : null, "data-where": one.where,
  });
  if (given) control.value = given;
  return { ...one, control, node: make("div", { class: "field" },
    make("label", { for: id }, one.name, one.required ? make("span", { class: "required" }, " (required)") : null), control,
    hint ? make("p", { class: "hint", id: `${id}-hint` }, ...prose(hint)) : null) };
}

function described(description, operation) {
  const found = (one) => (one.$ref
    ? one.$ref.split("/").slice(1).reduce((place, key) => place[key], description) : one);
  const all = (operation.parameters ?? []).map(found).map(({ in: where, ...one }) => ({ ...one, where }));
  const body = operation.requestBody?.content["application/json"].schema;
  const schema = body?.anyOf?.[0] ?? body;
  for (const [name, one] of Object.entries(schema?.properties ?? {})) {
    const { description: text, ...rest } = found(one);
    all.push({ name, where: "body", schema: rest, description: text, required: schema.required?.includes(name) });
  }
  if (schema?.additionalProperties) {
    all.push({ name: FREE, where: "body", schema: { type: "object" }, description: schema.additionalProperties.description });
  }
  return all;
}

// The fields of an operation as elements, and what is asked with what is written in them. `given` are values of the path.
export function fieldsOf(description, path, method, operation, given) {
  const all = described(description, operation)
    .map((one) => field(one, `${operation.operationId}-${one.where}-${one.name.replace(/\W/g, "-")}`, one.where === "path" ? given.get(one.name) : ""));
  const filled = (where) => all.filter((one) => one.where === where && one.control.value.trim());

  const asked = () => {
    const whole = path.replace(/\{(\w+)\}/g, (text, name) => {
      const value = all.find((one) => one.where === "path" && one.name === name).control.value;
      return value ? encodeURIComponent(value) : text;
    });
    const pairs = [];
    for (const { name, control } of filled("query")) {
      // A filter is a pair of its own, such as state[ne]=0&name=web01.
      if (name === "filter") pairs.push(...new URLSearchParams(control.value));
      else pairs.push([name, control.value.trim()]);
    }
    let body = "";
    if (operation.requestBody) {
      const document = {};
      for (const { name, schema, control } of filled("body")) {
        const value = valueOf(name, schema, control.value);
        if (name === FREE) Object.assign(document, value);
        else document[name] = value;
      }
      body = JSON.stringify(document);
    }
    return { path: whole, pairs, body };
  };

  const first = all.filter((one) => one.required || !COMMON.has(one.name));
  const rest = all.filter((one) => !first.includes(one));
  const grid = (some) => make("div", { class: "fields" }, ...some.map(({ node }) => node));
  return {
    asked,
    nodes: [
      first.length ? grid(first) : null,
      rest.length ? make("details", { class: "more" }, make("summary", {}, "More parameters"), grid(rest)) : null,
    ],
  };
}
