// xterm.js under a strict content security policy. It makes elements of inline style, which the policy forbids; here it
// gets a document whose style elements are hidden ones, and their texts become a style sheet made by script.

import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import sheetText from "@xterm/xterm/css/xterm.css?inline";

function documentWithoutStyles(): Document {
  return new Proxy(document, {
    get(target, name) {
      if (name === "createElement") {
        return (tag: string, options?: ElementCreationOptions) => target.createElement(tag === "style" ? "konverge-style" : tag, options);
      }
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === "function" ? (value as (...args: unknown[]) => unknown).bind(target) : value;
    },
  });
}

export interface Screen { terminal: Terminal; fit: FitAddon; dispose: () => void }

export function openScreen(host: HTMLElement): Screen {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const fixed = new CSSStyleSheet();
  fixed.replaceSync(`${sheetText}\n:host{display:block} konverge-style{display:none} .place{height:100%}`);
  const made = new CSSStyleSheet();
  root.adoptedStyleSheets = [fixed, made];
  const place = document.createElement("div");
  place.className = "place";
  root.replaceChildren(place);
  const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const terminal = new Terminal({
    documentOverride: documentWithoutStyles(), fontSize: 13, fontFamily: "ui-monospace, Menlo, Consolas, monospace", cursorBlink: false, scrollback: 5000, screenReaderMode: true,
    theme: { background: colour("--terminal"), foreground: colour("--terminal-text"), cursor: colour("--terminal-text") },
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  const copy = () => made.replaceSync([...root.querySelectorAll("konverge-style")].map((element) => element.textContent ?? "").join("\n"));
  const observer = new MutationObserver((records) => {
    const isStyle = (node: Node) => node.nodeName === "KONVERGE-STYLE" || node.parentNode?.nodeName === "KONVERGE-STYLE";
    if (records.some((record) => isStyle(record.target) || [...record.addedNodes].some(isStyle))) copy();
  });
  observer.observe(root, { subtree: true, childList: true, characterData: true });
  terminal.open(place);
  copy();
  fit.fit();
  return {
    terminal, fit,
    dispose: () => {
      observer.disconnect();
      terminal.dispose();
    },
  };
}
