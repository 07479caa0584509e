// xterm.js under a strict content security policy. It makes elements of inline style, which the policy forbids; here it
// gets hidden elements in their place, and their texts become a style sheet made by script, which the policy allows.

import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import sheetText from "@xterm/xterm/css/xterm.css?inline";

/** Run what makes style elements, with others in their place. */
function withoutStyles(work: () => void): void {
  const create = Document.prototype.createElement;
  document.createElement = ((tag: string, options?: ElementCreationOptions) =>
    create.call(document, tag === "style" ? "konverge-style" : tag, options)) as typeof document.createElement;
  try {
    work();
  } finally {
    delete (document as { createElement?: unknown }).createElement; // the prototype's shows again
  }
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
    fontSize: 13, fontFamily: "ui-monospace, Menlo, Consolas, monospace", cursorBlink: false, scrollback: 5000, screenReaderMode: true,
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
  withoutStyles(() => terminal.open(place));
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
