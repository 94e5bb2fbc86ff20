// Where the page is: the part of its address behind the #, and its history.

// Percent-encoded where it has to be, and legible elsewhere.
export const encoded = (text) =>
  encodeURIComponent(text).replace(/%(2C|3A|28|29|5B|5D|40|24|2F|2A)/g, decodeURIComponent);

export const withQuery = (path, pairs) =>
  path + (pairs.length ? `?${pairs.map(([name, value]) => `${encoded(name)}=${encoded(value)}`).join("&")}` : "");

let here = null;

// The page shows `place` from now on: a new entry of the history, unless it replaces the present one.
export function enter(place, { replace = false } = {}) {
  const { hash } = new URL(`#${place}`, location.href);
  if (hash !== location.hash) history[replace || !location.hash ? "replaceState" : "pushState"](null, "", hash);
  here = location.hash;
}

// Calls `show` with the place whenever the address has changed: the back button, a link, a pasted address.
export function follow(show) {
  const look = () => {
    if (location.hash === here) return;
    here = location.hash;
    show(here.slice(1));
  };
  addEventListener("popstate", look);
  addEventListener("hashchange", look);
  look();
}
