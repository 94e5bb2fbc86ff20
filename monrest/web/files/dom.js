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
