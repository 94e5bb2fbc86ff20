// The page of the explorer: tabs, who is asking, and the description that all of it is made from.
import { ask, login, logout, useKey } from "./account.js";
import { enter, follow } from "./address.js";
import { begin, changeAccount, question, show } from "./builder.js";
import { notice } from "./dom.js";
import { showEndpoints } from "./endpoints.js";
import { offerThemes } from "./theme.js";

const { app } = document.documentElement.dataset;
const $ = (id) => document.getElementById(id);
const TABS = ["query", "endpoints"];

let description = null;

// ------------------------------------------------------------------ tabs and addresses

function open(name) {
  for (const one of TABS) {
    const here = one === name;
    $(`tab-${one}`).setAttribute("aria-selected", String(here));
    $(`tab-${one}`).tabIndex = here ? 0 : -1;
    $(`panel-${one}`).hidden = !here;
  }
}

function choose(name) {
  if (!description) return;
  enter(name === "endpoints" ? "endpoints" : question());
  open(name);
  if (name === "endpoints") showEndpoints(description, "");
}

// Show what an address says: a query, all endpoints, or one of them.
function route(place) {
  if (place.startsWith("key=")) location.reload();
  else if (place.startsWith("endpoints")) {
    open("endpoints");
    showEndpoints(description, place.slice("endpoints/".length));
  } else {
    open("query");
    if (place.startsWith("/")) show(place, Boolean($("account").dataset.user));
  }
}

for (const name of TABS) {
  $(`tab-${name}`).addEventListener("click", () => choose(name));
  $(`tab-${name}`).addEventListener("keydown", (event) => {
    if (!["ArrowLeft", "ArrowRight"].includes(event.key)) return;
    const other = TABS[1 - TABS.indexOf(name)];
    choose(other);
    $(`tab-${other}`).focus();
  });
}

// ------------------------------------------------------------------ who is asking

async function who() {
  const answer = await ask(`/${app}/whoami`);
  const found = await answer.json();
  if (!answer.ok) throw found;
  return found.id;
}

async function showAccount() {
  let name = "";
  try { name = await who(); } catch { /* not logged in */ }
  $("account").textContent = name ? `${name} · log out` : "Log in";
  $("account").dataset.user = name;
  $("account").classList.toggle("quiet", Boolean(name));
  return name;
}

function askWho(problem) {
  $("login-problem").replaceChildren(...(problem ? [notice("bad", problem.message, problem.description)] : []));
  if (!$("login").open) $("login").showModal();
  $("key").focus();
}

async function logIn(how) {
  try {
    await how();
    await who();
  } catch (problem) {
    await logout();
    askWho(problem instanceof Error ? { message: "The service does not answer." } : problem);
    return;
  }
  for (const id of ["key", "password"]) $(id).value = "";
  $("login").close();
  await showAccount();
  await start();
  changeAccount();
}

$("account").addEventListener("click", async () => {
  if (!$("account").dataset.user) { askWho(); return; }
  await logout();
  location.reload();
});
$("close-login").addEventListener("click", () => $("login").close());
$("by-key").addEventListener("submit", (event) => {
  event.preventDefault();
  logIn(async () => useKey($("key").value.trim(), $("key-user").value.trim()));
});
$("by-password").addEventListener("submit", (event) => {
  event.preventDefault();
  logIn(() => login($("name").value.trim(), $("password").value));
});
document.addEventListener("login-wanted", () => askWho());

// ------------------------------------------------------------------ start

async function start() {
  if (description) return;
  const answer = await ask("/openapi.json");
  if (answer.status === 401) { askWho(); return; }
  if (!answer.ok) {
    const found = await answer.json();
    $("problem").replaceChildren(notice("bad", found.message, found.description));
    return;
  }
  description = await answer.json();
  $("problem").replaceChildren();
  begin(description);
  follow(route);
}

offerThemes();
try {
  await start();
  const name = await showAccount();
  if (name && description) changeAccount();
  else if (!name) askWho();
} catch (error) {
  $("problem").replaceChildren(notice("bad", "The service does not answer.", String(error.message ?? error)));
}
