// Signing in with a token. The address stays as it is, so the page that was asked for comes next.

import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { LanguageButton, Problem } from "../parts/basics";
import { session, signIn } from "../state";
import { t } from "../texts";

export const signInError = signal<unknown>(null);

export function SignIn() {
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const token = String(new FormData(form).get("token") ?? "").trim();
    if (!token) return;
    setBusy(true);
    signInError.value = null;
    try {
      await signIn({ token });
    } catch (error) {
      signInError.value = error;
    }
    setBusy(false);
  };
  return (
    <main id="main" class="sign-in" tabIndex={-1}>
      <form onSubmit={submit}>
        <div class="sign-head">
          <img src="/assets/icon.svg" alt="" width="40" height="40" />
          <LanguageButton />
        </div>
        <h1>{t("sign.title")}</h1>
        {session.value && !signInError.value ? <p role="status">{t("sign.over")}</p> : null}
        <Problem error={signInError.value} />
        <p>{t("sign.about")}</p>
        <label class="field" for="token"><span>{t("sign.token")}</span>
          <input id="token" name="token" type="password" autocomplete="off" spellcheck={false} required autofocus />
        </label>
        <button type="submit" class="main" disabled={busy}>{t("sign.button")}</button>
        <p class="quiet small">{t("sign.how")}</p>
      </form>
    </main>
  );
}
