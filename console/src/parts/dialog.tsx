// Dialogs: the browser's own, which keep the focus inside and give it back to what opened them.

import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { t } from "../texts";
import { Problem } from "./basics";

export function Dialog({ title, close, children, wide = false }: { title: string; close: () => void; children: ComponentChildren; wide?: boolean }) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
  const gone = useRef(false);
  useLayoutEffect(() => { // before the next key: it must not reach the page below
    const opener = document.activeElement as HTMLElement | null;
    const dialog = element.current!;
    if (!dialog.open) dialog.showModal();
    dialog.querySelector<HTMLElement>("[data-first]")?.focus();
    return () => {
      gone.current = true; // its `close` event comes later, when another dialog may be open
      if (dialog.open) dialog.close();
      if (opener?.isConnected) opener.focus();
    };
  }, []);
  return (
    <dialog ref={element} class={wide ? "wide" : ""} aria-labelledby={heading} onClose={() => { if (!gone.current) close(); }}
      onClick={(event) => { if (event.target === element.current) close(); }}>
      <header><h2 id={heading}>{title}</h2><button type="button" class="plain" aria-label={t("app.close")} onClick={close}>×</button></header>
      {children}
    </dialog>
  );
}

/** A dialog with a form: it stays open with the refusal when the work fails. */
export function Ask(props: {
  title: string; button: string; danger?: boolean; close: () => void; work: () => Promise<void>; children?: ComponentChildren; disabled?: boolean;
}) {
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (props.disabled || busy) return;
    setBusy(true);
    setError(null);
    try {
      await props.work();
      props.close();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return (
    <Dialog title={props.title} close={props.close}>
      <form onSubmit={submit}>
        {props.children}
        <Problem error={error} />
        <footer>
          <button type="button" onClick={props.close}>{t("app.cancel")}</button>
          <button type="submit" class={props.danger ? "danger" : "main"} disabled={props.disabled || busy}>{props.button}</button>
        </footer>
      </form>
    </Dialog>
  );
}

export function Field({ label, hint, children }: { label: string; hint?: string; children: ComponentChildren }) {
  return <label class="field"><span>{label}{hint && <small> {hint}</small>}</span>{children}</label>;
}

/** An input for a text or a number, which says each change. */
export function Entry(props: {
  id?: string; number?: boolean; value: string; change: (text: string) => void; placeholder?: string; required?: boolean; invalid?: boolean; describedBy?: string;
}) {
  const common = {
    id: props.id, value: props.value, placeholder: props.placeholder, required: props.required, spellcheck: false, autocomplete: "off" as const,
    "aria-invalid": props.invalid, "aria-describedby": props.describedBy,
    onInput: (event: { currentTarget: HTMLInputElement }) => props.change(event.currentTarget.value),
  };
  return props.number ? <input type="number" step="any" {...common} /> : <input type="text" {...common} />;
}
