/** Light and dark: as the reader's system has it, until the button says otherwise. */

import { element } from "./controls";

const KEY = "lintra-theme";

/** Set the theme, and listen to the button. */
export function listenToTheme(): void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = element("theme");
  let chosen = remembered();
  const show = () => {
    const dark = chosen === null ? system.matches : chosen === "dark";
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    button.setAttribute("aria-pressed", String(dark));
  };
  system.addEventListener("change", show);
  button.addEventListener("click", () => {
    chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    remember(chosen);
    show();
  });
  show();
}

function remembered(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null; // some browsers keep it from pages on disk
  }
}

function remember(theme: string): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // then it lasts as long as the page
  }
}
