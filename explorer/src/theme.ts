/** Light and dark: as the reader's system has it, until the button says otherwise. */

import { element } from "./controls";

const KEY = "lintra-theme";

/** Set the theme, and listen to the button. */
export function listenToTheme(): void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = element("theme");
  let choice = loadChoice();
  const show = () => {
    const dark = choice === null ? system.matches : choice === "dark";
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    button.setAttribute("aria-pressed", String(dark));
  };
  system.addEventListener("change", show);
  button.addEventListener("click", () => {
    choice = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    saveChoice(choice);
    show();
  });
  show();
}

function loadChoice(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null; // some browsers keep it from pages on disk
  }
}

function saveChoice(theme: string): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // then it lasts as long as the page
  }
}
