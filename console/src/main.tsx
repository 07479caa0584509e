import { render } from "preact";
import { App } from "./app";
import { signedOut } from "./api/http";
import { signInError } from "./pages/signIn";
import { applyTheme, replaceAddress, signIn, start } from "./state";
import { language, setLanguage } from "./texts";
import "./style/base.css";
import "./style/shell.css";
import "./style/parts.css";
import "./style/pages.css";

applyTheme();
setLanguage(language.value);
render(<App />, document.getElementById("app")!);

// A link of `konverge up` or `konverge console`: its code is used once, and leaves the address at once.
const code = /^#sign-in=([\w-]+)$/.exec(location.hash);
if (code) {
  replaceAddress("#/");
  signIn({ code: code[1] }).catch((error: unknown) => {
    signInError.value = error;
    signedOut.value = true;
  });
} else void start();
