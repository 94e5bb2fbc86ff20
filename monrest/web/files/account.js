// Who is asking: a key, or the session of a login. Kept in this tab only, and forgotten with it.
const KEPT = "monrest-account";
const { key: KEY, user: USER, token: TOKEN } = document.documentElement.dataset;

export const root = new URL(document.body.dataset.root, location.href).href;

let account = JSON.parse(sessionStorage.getItem(KEPT) ?? "{}");

// An address that ends with #key=…&user=… logs in; the key does not stay in it.
const given = new URLSearchParams(location.hash.slice(1));
if (given.has("key")) {
  keep({ key: given.get("key"), user: given.get("user") ?? "" });
  history.replaceState(null, "", location.pathname);
}

function keep(value) {
  account = value;
  sessionStorage.setItem(KEPT, JSON.stringify(value));
}

export const current = () => account;
export const useKey = (key, user) => keep({ key, user });

// The headers that say who is asking, for a request with this method.
export function credentials(method = "GET") {
  const headers = {};
  if (account.key) {
    headers[KEY] = account.key;
    if (account.user) headers[USER] = account.user;
  } else if (account.token && !["GET", "HEAD"].includes(method)) {
    headers[TOKEN] = account.token;
  }
  return headers;
}

export function ask(path, options = {}) {
  const { method = "GET", headers = {}, ...more } = options;
  return fetch(root + path, {
    method,
    headers: { Accept: "application/json", ...headers, ...credentials(method) },
    credentials: "same-origin",
    ...more,
  });
}

export async function login(name, password) {
  keep({});
  const body = new URLSearchParams({ login: name, password });
  const answer = await ask(`/${document.documentElement.dataset.app}/login`, { method: "POST", body });
  const found = await answer.json();
  if (!answer.ok) throw found;
  keep({ user: found.user, token: found.csrf_token });
}

export async function logout() {
  if (account.token) {
    await ask(`/${document.documentElement.dataset.app}/logout`, { method: "POST" });
  }
  keep({});
}
