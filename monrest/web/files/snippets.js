// The same request in other languages. The key itself is never in them.
import { current } from "./account.js";

const { key: KEY, user: USER } = document.documentElement.dataset;

const shell = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
const python = (value) => JSON.stringify(value);

// `asked` has method, url (whole), path (with its query, below the root), and a body that is text.
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

function script({ method, url, body, type, accept, format }) {
  const account = current();
  const address = new URL(url);
  const pairs = [...address.searchParams].map(([name, value]) => `    (${python(name)}, ${python(value)}),`);
  const session = !account.key && account.token;
  const headers = session ? [] : [`${python(KEY)}: os.environ["MONREST_KEY"]`];
  if (account.user && !session) headers.push(`${python(USER)}: ${python(account.user)}`);
  if (accept) headers.push(`"Accept": ${python(accept)}`);
  if (body) headers.push(`"Content-Type": ${python(type)}`);
  const lines = [
    ...(session ? ["import getpass"] : ["import os"]), "", "import requests", "",
    "answer = requests.request(",
    `    ${python(method)},`,
    `    ${python(address.origin + address.pathname)},`,
    ...(pairs.length ? ["    params=[", ...pairs.map((one) => `    ${one}`), "    ],"] : []),
    ...(body ? [`    data=${python(body)},`] : []),
    ...(session ? [`    auth=(${python(account.user)}, getpass.getpass()),`] : []),
    ...(headers.length ? [`    headers={${headers.join(", ")}},`] : []),
    "    timeout=60,", ")", "answer.raise_for_status()",
    format && format !== "json" ? "print(answer.text)" : "print(answer.json())",
  ];
  return lines.join("\n");
}

export const LANGUAGES = { curl, monrest: command, Python: script };
