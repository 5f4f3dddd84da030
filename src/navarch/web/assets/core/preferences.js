// What this reader chose once: the colours of the page, and which jobs are "mine". Kept in the browser, never sent anywhere.
import { useEffect, useState } from "./dom.js";

const PREFIX = "navarch.";
const listeners = new Map();

export function preference(name, fallback = "") {
  try {
    return localStorage.getItem(PREFIX + name) ?? fallback;
  } catch {
    return fallback; // the browser keeps nothing for this page
  }
}

export function setPreference(name, value) {
  try {
    localStorage.setItem(PREFIX + name, value);
  } catch {
    // The choice then lasts until the page is left.
  }
  for (const listener of listeners.get(name) ?? []) listener(value);
}

export function usePreference(name, fallback = "") {
  const [value, setValue] = useState(() => preference(name, fallback));
  useEffect(() => {
    const own = listeners.get(name) ?? new Set();
    listeners.set(name, own.add(setValue));
    return () => own.delete(setValue);
  }, [name]);
  return [value, (next) => setPreference(name, next)];
}

// "system" follows the browser; the stylesheet has both sets of colours by light-dark().
export function applyTheme(theme) {
  document.documentElement.dataset.theme = theme;
  dispatchEvent(new Event("themechange"));
}

// A colour of the stylesheet as canvases need it: resolved for the theme in force.
export function themeColour(name) {
  const probe = document.getElementById("colour-probe");
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

// Whether the page is as narrow as a phone; the same width as in the stylesheets.
export function useNarrow() {
  const query = "(max-width: 640px)";
  const [narrow, setNarrow] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const changed = () => setNarrow(list.matches);
    list.addEventListener("change", changed);
    return () => list.removeEventListener("change", changed);
  }, []);
  return narrow;
}

// Counts up whenever the colours of the page change, so that canvases draw again.
export function useThemeVersion() {
  const [version, setVersion] = useState(0);
  useEffect(() => {
    const system = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => setVersion((number) => number + 1);
    system.addEventListener("change", changed);
    addEventListener("themechange", changed);
    return () => {
      system.removeEventListener("change", changed);
      removeEventListener("themechange", changed);
    };
  }, []);
  return version;
}
