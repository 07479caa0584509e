// The keyboard's shortcuts.

import { t, type Key } from "../texts";
import { Dialog } from "./dialog";

const SHORTCUTS: [string[], Key][] = [
  [["g", "Ctrl K"], "help.kinds"], [["/"], "help.search"], [["o"], "help.overview"], [["↑", "↓", "j", "k"], "help.rows"], [["Enter"], "help.open"],
  [["←", "→"], "help.tabs"], [["Esc"], "help.escape"], [["?"], "help.help"],
];

export function Help({ close }: { close: () => void }) {
  return (
    <Dialog title={t("help.title")} close={close}>
      <dl class="shortcuts">
        {SHORTCUTS.map(([keys, text]) => <div key={text}><dt>{keys.map((key) => <kbd key={key}>{key}</kbd>)}</dt><dd>{t(text)}</dd></div>)}
      </dl>
    </Dialog>
  );
}
