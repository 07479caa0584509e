// A terminal in a container, by the API server's own exec.

import { useEffect, useRef, useState } from "preact/hooks";
import { send } from "../api/http";
import { apiPath } from "../api/kinds";
import { openScreen, type Screen } from "../parts/screen";
import type { TabProps } from "../pages/object";
import { endOf, ERROR, resizeFrame, STDERR, STDIN, STDOUT, textFrame } from "../pure/channels";
import { t } from "../texts";

interface Named { name: string }

export function TerminalTab({ object }: TabProps) {
  const containers = ((object.spec?.containers ?? []) as Named[]).map((entry) => entry.name);
  const [container, setContainer] = useState(containers[0] ?? "");
  const [command, setCommand] = useState("sh");
  const [state, setState] = useState<{ turn: number; text: string; open: boolean }>({ turn: 0, text: "", open: false });
  const host = useRef<HTMLDivElement>(null);
  const leave = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!state.turn) return undefined;
    const screen = openScreen(host.current!);
    const socket = connect(object.metadata.namespace ?? "", object.metadata.name, container, command, screen, {
      opened: () => setState((old) => ({ ...old, text: t("terminal.connected"), open: true })),
      closed: (reason) => setState((old) => ({ ...old, text: reason ? t("terminal.failed", { reason }) : t("terminal.closed"), open: false })),
      left: () => leave.current?.focus(),
    });
    return () => {
      socket.close();
      screen.dispose();
    };
  }, [state.turn]);
  return (
    <div class="terminal-tab">
      <form class="bar" onSubmit={(event) => { event.preventDefault(); setState((old) => ({ turn: old.turn + 1, text: "", open: false })); }}>
        <label class="field"><span>{t("logs.container")}</span>
          <select value={container} onChange={(event) => setContainer(event.currentTarget.value)}>{containers.map((name) => <option key={name}>{name}</option>)}</select></label>
        <label class="field"><span>{t("terminal.command")}</span><input type="text" value={command} spellcheck={false} onInput={(event) => setCommand(event.currentTarget.value)} /></label>
        <button type="submit" class="main" ref={leave} disabled={!command.trim()}>{t("terminal.connect")}</button>
        <span role="status" class="quiet">{state.text}</span>
      </form>
      <div class="terminal" ref={host} data-open={state.open} />
    </div>
  );
}

/** Browsers do not show why a WebSocket was refused: the same request without one says it. */
async function refusalOf(address: string): Promise<string> {
  try {
    return (await send(address)).statusText;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

interface Listener { opened: () => void; closed: (reason: string) => void; left: () => void }

function connect(namespace: string, name: string, container: string, command: string, screen: Screen, listener: Listener): WebSocket {
  const path = apiPath({ group: "", version: "v1", resource: "pods", namespace, name }, "exec");
  const query = new URLSearchParams({ container, stdin: "true", stdout: "true", tty: "true" });
  for (const word of command.trim().split(/\s+/)) query.append("command", word);
  const address = `${path}?${query.toString()}`;
  const socket = new WebSocket(location.origin.replace(/^http/, "ws") + address, ["v5.channel.k8s.io", "v4.channel.k8s.io"]);
  socket.binaryType = "arraybuffer";
  const { terminal, fit } = screen;
  let reason = "";
  let opened = false;
  const write = (bytes: Uint8Array<ArrayBuffer>) => { if (socket.readyState === WebSocket.OPEN) socket.send(bytes); };
  socket.onopen = () => {
    opened = true;
    listener.opened();
    write(resizeFrame(terminal.cols, terminal.rows));
    terminal.focus();
  };
  socket.onmessage = (event: MessageEvent<ArrayBuffer>) => {
    const bytes = new Uint8Array(event.data);
    if (bytes[0] === STDOUT || bytes[0] === STDERR) terminal.write(bytes.subarray(1));
    else if (bytes[0] === ERROR) reason = endOf(new TextDecoder().decode(bytes.subarray(1)));
  };
  socket.onclose = async () => listener.closed(opened ? reason : await refusalOf(address));
  terminal.onData((text) => write(textFrame(STDIN, text)));
  terminal.onResize(({ cols, rows }) => write(resizeFrame(cols, rows)));
  terminal.attachCustomKeyEventHandler((event) => {
    if (!(event.ctrlKey && event.shiftKey && event.key.toLowerCase() === "q")) return true;
    if (event.type === "keydown") listener.left();
    return false;
  });
  const observer = new ResizeObserver(() => fit.fit());
  observer.observe(terminal.element!);
  socket.addEventListener("close", () => observer.disconnect());
  return socket;
}
