// Parts that are loaded when they are first needed. A failure to load one says to reload: the program was replaced.

import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { t } from "../texts";
import { Loading, Problem } from "./basics";

export function lazy<P>(load: () => Promise<ComponentType<P>>): (props: P) => JSX.Element {
  let loaded: ComponentType<P> | null = null;
  return (props: P) => {
    const [, redraw] = useState(0);
    const [failed, setFailed] = useState(false);
    useEffect(() => {
      if (loaded) return;
      load().then((component) => {
        loaded = component;
        redraw(1);
      }, () => setFailed(true));
    }, []);
    if (failed) return <Problem error={new Error(t("app.reload"))} retry={() => location.reload()} />;
    if (!loaded) return <Loading />;
    const Component = loaded as ComponentType<any>;
    return <Component {...(props as object)} />;
  };
}
