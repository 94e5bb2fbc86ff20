// The same request in other languages. The key itself is never in them.
import { current } from "./account.js";
import { choice } from "./dom.js";

const { key: KEY, user: USER } = document.documentElement.dataset;

const shell = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
const LANGUAGE = "monrest-language";

// A request has method, url (whole), path (with format and query, below the root), plain (without the format), and a
// body that is text.
function curl({ method, url, body, type, accept }) {
  const account = current();
  // -g: brackets are those of filters.
  const words = ["curl -sg"];
  if (account.key || !account.token) {
    words.push(`-H "${KEY}: $MONREST_KEY"`);
    if (account.user) words.push(`-H ${shell(`${USER}: ${account.user}`)}`);
  } else words.push(`-u ${shell(account.user)}`);
  if (accept) words.push(`-H ${shell(`Accept: ${accept}`)}`);
  if (method !== "GET") words.push(`-X ${method}`);
  if (body) words.push(`-H ${shell(`Content-Type: ${type}`)}`, `-d ${shell(body)}`);
  return [...words, shell(url)].join(" \\\n  ");
}

function command({ method, path, body, root }) {
  const account = current();
  const set = [`MONREST_URL=${shell(root)}`, "MONREST_KEY=…"];
  if (account.user) set.push(`MONREST_USER=${shell(account.user)}`);
  const words = ["monrest r"];
  if (method !== "GET") words.push(`-m ${method}`);
  if (body) words.push(`-d ${shell(body)}`);
  return `export ${set.join(" ")}\n${[...words, shell(path)].join(" ")}`;
}

const NAME = /^(?!(?:and|as|class|def|del|for|from|global|if|import|in|is|lambda|not|or|pass|return|try|with)$)[a-z_]\w*$/i;

function python(value) {
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${python(one)}`).join(", ")}}`;
}

// The client speaks JSON and gives Python's values, so that a format has no part in it.
function client({ method, plain, body, root }) {
  const account = current();
  const [path, query = ""] = plain.split(/\?(.*)/s);
  const values = new Map();
  for (const [name, value] of new URLSearchParams(query)) values.set(name, [...(values.get(name) ?? []), value]);
  const named = [...values].map(([name, several]) => [name, several.length > 1 ? several : several[0]]);
  const given = [
    python(path), ...(body ? [python(JSON.parse(body))] : []),
    ...named.filter(([name]) => NAME.test(name)).map(([name, value]) => `${name}=${python(value)}`),
  ];
  const odd = named.filter(([name]) => !NAME.test(name));
  if (odd.length) given.push(`**${python(Object.fromEntries(odd))}`);
  const user = account.key && account.user ? `, user=${python(account.user)}` : "";
  return [
    "import os", "", "from monrest.client import Client", "",
    `with Client(${python(root)}, key=os.environ["MONREST_KEY"]${user}) as client:`,
    `    answer = client.${method.toLowerCase()}(`, ...given.map((one) => `        ${one},`), "    )",
    "print(answer)",
  ].join("\n");
}

export const LANGUAGES = { curl, monrest: command, Python: client };

// The switch of languages above a request; `request` gives it, `place` and `text` are elements.
export function offerLanguages(place, text, request) {
  let language = localStorage.getItem(LANGUAGE) ?? "curl";
  const write = () => { text.textContent = LANGUAGES[language](request()); };
  choice(place, Object.keys(LANGUAGES).map((one) => [one, one]), () => language, (name) => {
    language = name;
    localStorage.setItem(LANGUAGE, name);
    write();
  });
  write();
  return write;
}
