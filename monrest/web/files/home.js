import { ask } from "./account.js";
import { make, notice } from "./dom.js";
import { offerThemes } from "./theme.js";

const place = document.getElementById("sites");

function line(site) {
  const up = site.connected === 1;
  const said = up ? "" : String(site.last_error ?? "");
  return make("tr", {},
    make("td", {}, make("strong", {}, site.name || site.id)),
    make("td", {}, site.section ?? ""),
    make("td", {}, make("span", { class: `pill ${up ? "good" : "bad"}` }, up ? "up" : "down")),
    make("td", { class: "whole" }, said));
}

async function showSites() {
  let answer;
  try {
    answer = await ask("/sites?columns=id,name,section,connected,last_error");
  } catch {
    place.replaceChildren(notice("bad", "The service does not answer."));
    return;
  }
  if (answer.status === 401 || answer.status === 403) {
    const link = make("a", { href: document.querySelector(".actions a").href }, "Log in with the explorer");
    place.replaceChildren(make("p", {}, link, " to see them."));
    return;
  }
  const sites = await answer.json();
  if (!answer.ok) {
    place.replaceChildren(notice("bad", sites.message, sites.description));
    return;
  }
  const head = ["Site", "Section", "State", ""].map((text) => make("th", { scope: "col" }, text));
  place.replaceChildren(sites.length
    ? make("div", { class: "scroll" },
        make("table", { class: "data" }, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...sites.map(line))))
    : make("p", {}, "No site is configured, or none that you may see."));
}

offerThemes();
showSites();
