// Elements from values; a text is never read as HTML.
export function make(tag, attributes = {}, ...children) {
  const found = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) found.addEventListener(name.slice(2), value);
    else if (name === "class") found.className = value;
    else found.setAttribute(name, value === true ? "" : value);
  }
  found.append(...children.filter((one) => one !== null && one !== undefined));
  return found;
}

export const notice = (kind, title, text = "") =>
  make("div", { class: `notice ${kind}`, role: kind === "bad" ? "alert" : "status" },
    make("strong", {}, title), text ? make("p", {}, text) : null);

// A text in which `words` are code.
export const prose = (text) =>
  text.split("`").map((part, at) => (at % 2 ? make("code", {}, part) : part));

// A row of buttons of which one is pressed.
export function choice(place, names, current, choose) {
  const press = () => {
    for (const one of place.children) one.setAttribute("aria-pressed", String(one.value === current()));
  };
  place.replaceChildren(...names.map(([name, text]) =>
    make("button", { type: "button", value: name, onclick: () => { choose(name); press(); } }, text)));
  press();
}
