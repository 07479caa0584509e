// The frame: header, menu, banner, the page of the address, shortcuts.

import { useComputed, useSignal } from "@preact/signals";
import { lazy } from "./parts/lazy";
import { useEffect, useRef } from "preact/hooks";
import { findKind, kinds } from "./api/kinds";
import { reachable, signedOut } from "./api/http";
import { session as ask } from "./api/console";
import { poll } from "./api/watch";
import { Help } from "./parts/help";
import { LanguageButton, Loading, Missing, notice, Problem } from "./parts/basics";
import { Palette } from "./parts/palette";
import { KindPage } from "./pages/kind";
import { Overview } from "./pages/overview";
import { SignIn } from "./pages/signIn";
import { groupKinds } from "./pure/groups";
import { kindAddress, splitVersion, type Route } from "./pure/routes";
import { followPages, operatorPages, route, session, signOut, start, started, startError, toggleTheme } from "./state";
import { t, type Key } from "./texts";

const ObjectPage = lazy(() => import("./pages/object").then((module) => module.ObjectPage));
const Simulation = lazy(() => import("./pages/simulation").then((module) => module.Simulation));
const LoadPage = lazy(() => import("./pages/load").then((module) => module.LoadPage));
const OperatorPage = lazy(() => import("./pages/operator").then((module) => module.OperatorPage));
const CreateNacos = lazy(() => import("./pages/createNacos").then((module) => module.CreateNacos));
const NewObject = lazy(() => import("./pages/newObject").then((module) => module.NewObject));

function Page({ at }: { at: Route }) {
  switch (at.page) {
    case "overview": return <Overview />;
    case "kind": return <KindPage key={`${at.group}/${at.version}/${at.resource}`} at={at} />;
    case "object": return <ObjectPage key={`${at.group}/${at.resource}/${at.namespace}/${at.name}`} at={at} />;
    case "simulation": return <Simulation />;
    case "load": return <LoadPage />;
    case "operator": return <OperatorPage key={at.name} name={at.name} />;
    case "create": return <CreateNacos />;
    case "new": return <NewObject key={`${at.group}/${at.resource}`} at={at} />;
    case "missing": return <Missing />;
  }
}

function typing(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  return Boolean(element?.closest?.("input, textarea, select, dialog, .terminal, .editor") || element?.shadowRoot);
}

function useShortcuts(actions: { help: () => void; palette: () => void }) {
  useEffect(() => {
    const keys = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "k") {
        event.preventDefault();
        actions.palette();
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Escape" && (event.target as HTMLElement).matches?.("input[type=search]")) (event.target as HTMLElement).blur();
      if (typing(event.target)) return;
      if (event.key === "?") actions.help();
      else if (event.key === "g") actions.palette();
      else if (event.key === "o") location.hash = "#/";
      else if (event.key === "/") {
        const search = document.querySelector<HTMLElement>("main input[type=search]") ?? document.querySelector<HTMLElement>("nav input[type=search]");
        search?.focus();
      } else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", keys);
    return () => document.removeEventListener("keydown", keys);
  }, []);
}

/** Other clusters have the pages that were there when the console started. */
function useChangingPages() {
  const changing = started.value && Boolean(session.value?.simulated);
  useEffect(() => (changing ? followPages() : undefined), [changing]);
}

/** While the server is away, ask for it: the banner goes when it is back. */
function useReconnection() {
  const away = !reachable.value;
  useEffect(() => (away ? poll(2000, async () => { await ask(); }) : undefined), [away]);
}

export function App() {
  const help = useSignal(false);
  const palette = useSignal(false);
  const menu = useSignal(false);
  const main = useRef<HTMLElement>(null);
  useShortcuts({ help: () => { help.value = true; }, palette: () => { palette.value = started.value; } });
  useReconnection();
  useChangingPages();
  const at = route.value;
  const place = at.page === "object" ? `${at.resource}/${at.name}` : at.page === "kind" ? at.resource : at.page;
  useEffect(() => {
    menu.value = false;
    document.title = at.page === "object" ? `${at.name} – Konverge` : "Konverge";
    if (!document.activeElement || document.activeElement === document.body || document.activeElement.closest("nav")) main.current?.focus({ preventScroll: true });
  }, [place]);
  if (signedOut.value) return <><Banner /><SignIn /></>;
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>{t("app.skip")}</a>
      <Header menu={() => { menu.value = !menu.value; }} open={menu.value} help={() => { help.value = true; }} palette={() => { palette.value = started.value; }} />
      <Banner />
      <div class="frame">
        <Menu at={at} open={menu.value} />
        <main id="main" tabIndex={-1} ref={main}>
          {startError.value ? <Problem error={startError.value} retry={() => void start()} /> : null}
          {started.value ? <Page at={at} /> : !startError.value && <Loading />}
        </main>
      </div>
      <div class="notice" role="status">{notice.value && <p>{notice.value}</p>}</div>
      {help.value && <Help close={() => { help.value = false; }} />}
      {palette.value && <Palette close={() => { palette.value = false; }} />}
    </>
  );
}

function Banner() {
  return <div role="alert">{!reachable.value && <p class="banner">{t("app.away")}</p>}</div>;
}

function Header(props: { menu: () => void; open: boolean; help: () => void; palette: () => void }) {
  const who = session.value;
  return (
    <header class="top">
      <button type="button" class="plain menu-button" aria-expanded={props.open} aria-controls="menu" aria-label={t("app.menu")} onClick={props.menu}>☰</button>
      <a class="brand" href="#/"><img src="/assets/icon.svg" alt="" width="22" height="22" /><strong>Konverge</strong></a>
      {who && <span class={`cluster${who.context || who.cluster ? "" : " nameless"}`} title={who.server}>{who.context || who.cluster}{who.version ? <small> {who.version}</small> : null}</span>}
      <span class="gap" />
      <button type="button" class="find" onClick={props.palette}><span>{t("palette.title")}…</span><kbd>g</kbd></button>
      <LanguageButton />
      <button type="button" class="plain" aria-label={t("app.theme")} title={t("app.theme")} onClick={toggleTheme}>◐</button>
      <button type="button" class="plain" aria-label={t("app.help")} title={t("app.help")} onClick={props.help}>?</button>
      {who && <><span class="who" title={who.user}>{who.user}</span><button type="button" class="plain" id="out" onClick={() => void signOut()}>{t("app.signOut")}</button></>}
    </header>
  );
}

function Menu({ at, open }: { at: Route; open: boolean }) {
  const search = useSignal("");
  const groups = useComputed(() => groupKinds(kinds.value));
  const needle = search.value.toLowerCase();
  const current = (match: boolean) => (match ? "page" as const : undefined);
  const groupTitle = (id: string, custom: boolean) => (custom ? id : t(`group.${id}` as Key));
  return (
    <nav id="menu" class={open ? "open" : ""} aria-label={t("app.menu")}>
      <ul>
        <li><a href="#/" aria-current={current(at.page === "overview")}>{t("app.overview")}</a></li>
        {operatorPages.value.filter((page) => findKind(splitVersion(page.apiVersion).group, "", page.resource)).map((page) => <li key={page.name}><a href={`#/p/${encodeURIComponent(page.name)}`} aria-current={current(at.page === "operator" && at.name === page.name)}>{page.title}</a></li>)}
        <li><a href="#/load" aria-current={current(at.page === "load")}>{t("load.title")}</a></li>
        {session.value?.simulated && <li><a href="#/simulation" aria-current={current(at.page === "simulation")}>{t("app.simulation")}</a></li>}
      </ul>
      <input type="search" aria-label={t("app.filterKinds")} placeholder={t("app.filterKinds")} value={search.value} onInput={(event) => { search.value = event.currentTarget.value; }} />
      {groups.value.map((group) => {
        const entries = group.kinds.filter((kind) => !needle || `${kind.kind} ${kind.resource} ${kind.shortNames.join(" ")}`.toLowerCase().includes(needle));
        if (!entries.length) return null;
        return (
          <section key={group.id}>
            <h2>{groupTitle(group.id, group.custom)}</h2>
            <ul>{entries.map((kind) => (
              <li key={kind.apiVersion + kind.kind}>
                <a href={kindAddress(kind)} aria-current={current((at.page === "kind" || at.page === "object") && at.group === kind.group && at.resource === kind.resource)}>{kind.kind}</a>
              </li>
            ))}</ul>
          </section>
        );
      })}
    </nav>
  );
}
