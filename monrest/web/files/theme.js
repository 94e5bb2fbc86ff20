// Light, dark, or as the system has it; remembered in this browser.
const KEY = "monrest-theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const NEXT = { "": "dark", dark: "light", light: "" };
const WORDS = { "": "Theme: system", dark: "Theme: dark", light: "Theme: light" };

let chosen = localStorage.getItem(KEY) ?? "";

function apply() {
  const dark = chosen ? chosen === "dark" : system.matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  const button = document.getElementById("theme");
  if (button) button.textContent = WORDS[chosen];
}

export function offerThemes() {
  apply();
  system.addEventListener("change", apply);
  document.getElementById("theme").addEventListener("click", () => {
    chosen = NEXT[chosen] ?? "";
    localStorage.setItem(KEY, chosen);
    apply();
  });
}
