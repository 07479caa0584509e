// The editor for YAML. It lives in a shadow root: there its styles are style sheets made by script, which a strict
// content security policy allows, and not elements of inline style, which it does not.

import { autocompletion, completionKeymap, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentLess, indentMore } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, foldGutter, foldKeymap, HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "preact/hooks";
import { pathAt } from "../pure/yamlPath";
import type { Offer } from "../pure/schema";

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent-text)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: tags.comment, color: "var(--quiet)" },
  { tag: [tags.meta, tags.punctuation, tags.separator], color: "var(--quiet)" },
]);

const look = EditorView.theme({
  "&": { height: "100%", fontSize: "13px", backgroundColor: "var(--ground)", color: "var(--text)" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--text)" },
  "&.cm-focused": { outline: "none" }, // the frame around the shadow root shows the focus
  ".cm-gutters": { backgroundColor: "var(--ground)", color: "var(--quiet)", border: "none" },
  ".cm-activeLine": { backgroundColor: "var(--hover)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": { backgroundColor: "var(--selection)" },
  ".cm-tooltip, .cm-panels": { backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionDetail": { color: "var(--quiet)", fontStyle: "normal" },
  ".cm-foldPlaceholder": { backgroundColor: "var(--hover)", border: "none", color: "var(--quiet)" },
});

interface Props {
  value: string;
  readOnly: boolean;
  label: string;
  changed?: (text: string) => void;
  /** The path of the field at the cursor. */
  at?: (path: string[]) => void;
  /** The keys that may stand below a path. */
  offers?: (path: string[]) => Offer[];
}

function completions(offers: (path: string[]) => Offer[]) {
  return (context: CompletionContext): CompletionResult | null => {
    const line = context.state.doc.lineAt(context.pos);
    const before = line.text.slice(0, context.pos - line.from);
    const match = /^(\s*(?:- )*)([\w-]*)$/.exec(before);
    if (!match || (!match[2] && !context.explicit)) return null;
    const rows = context.state.doc.toString().split("\n");
    rows[line.number - 1] = `${match[1]}x:`; // the key that is about to be
    const path = pathAt(rows.join("\n"), line.number - 1).slice(0, -1);
    const options = offers(path).map((offer) => ({
      label: offer.key, detail: offer.type, info: offer.description || undefined, type: "property", boost: offer.required ? 1 : 0,
      apply: offer.collection ? `${offer.key}:` : `${offer.key}: `,
    }));
    return options.length ? { from: context.pos - match[2].length, options, validFor: /^[\w-]*$/ } : null;
  };
}

// Tab would make the editor a trap for the keyboard: indentation has Ctrl+] and Ctrl+[.
const indentation = [{ key: "Mod-]", run: indentMore }, { key: "Mod-[", run: indentLess }];

export function Editor(props: Props) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const changeable = useRef(new Compartment());

  useEffect(() => {
    const root = host.current!.shadowRoot ?? host.current!.attachShadow({ mode: "open" });
    const editor = new EditorView({
      root, parent: root,
      state: EditorState.create({
        doc: props.value,
        extensions: [
          lineNumbers(), foldGutter(), history(), drawSelection(), bracketMatching(), highlightActiveLine(), highlightSelectionMatches(), search({ top: true }),
          yaml(), indentUnit.of("  "), syntaxHighlighting(colours), look, EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": props.label, tabindex: "0" }),
          autocompletion({ override: [completions((path) => latest.current.offers?.(path) ?? [])], activateOnTyping: true }),
          keymap.of([...completionKeymap, ...indentation, ...defaultKeymap, ...historyKeymap, ...searchKeymap, ...foldKeymap]),
          changeable.current.of(mode(props.readOnly)),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) latest.current.changed?.(update.state.doc.toString());
            if (update.docChanged || update.selectionSet) {
              const line = update.state.doc.lineAt(update.state.selection.main.head);
              latest.current.at?.(pathAt(update.state.doc.toString(), line.number - 1, update.state.selection.main.head - line.from));
            }
          }),
        ],
      }),
    });
    view.current = editor;
    return () => editor.destroy();
  }, []);
  useEffect(() => {
    const editor = view.current!;
    if (editor.state.doc.toString() === props.value) return;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: props.value } });
  }, [props.value]);
  useEffect(() => {
    view.current!.dispatch({ effects: changeable.current.reconfigure(mode(props.readOnly)) });
    if (!props.readOnly) view.current!.focus();
  }, [props.readOnly]);
  return <div class="editor" ref={host} />;
}

const mode = (readOnly: boolean) => [EditorState.readOnly.of(readOnly)];
