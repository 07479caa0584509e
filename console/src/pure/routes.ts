// Addresses of the pages. They live in the fragment, so no name of an object reaches the server's log.

export type Route =
  | { page: "overview" }
  | { page: "kind"; group: string; version: string; resource: string; namespace: string; search: string; labels: string }
  | { page: "object"; group: string; version: string; resource: string; namespace: string; name: string; tab: string }
  | { page: "create"; form: string }
  | { page: "new"; group: string; version: string; resource: string; namespace: string }
  | { page: "operator"; name: string }
  | { page: "simulation" }
  | { page: "load" }
  | { page: "missing" };

const part = (text: string) => encodeURIComponent(text);
const NONE = "-"; // the core group, or no namespace: neither can be called so

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The route of a fragment such as `#/o/apps/v1/deployments/shop/web?tab=yaml`. */
export function parseRoute(hash: string): Route {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/").filter(Boolean).map(decode);
  const options = new URLSearchParams(query);
  const given = (text: string | undefined) => (text === undefined || text === NONE ? "" : text);
  if (!parts.length) return { page: "overview" };
  if (parts[0] === "k" && parts.length === 4) {
    const [, group, version, resource] = parts;
    return {
      page: "kind", group: given(group), version, resource,
      namespace: options.get("namespace") ?? "", search: options.get("search") ?? "", labels: options.get("labels") ?? "",
    };
  }
  if (parts[0] === "o" && parts.length === 6) {
    const [, group, version, resource, namespace, name] = parts;
    return { page: "object", group: given(group), version, resource, namespace: given(namespace), name, tab: options.get("tab") ?? "" };
  }
  if (parts[0] === "create" && parts.length === 2) return { page: "create", form: parts[1] };
  if (parts[0] === "new" && parts.length === 4) {
    const [, group, version, resource] = parts;
    return { page: "new", group: given(group), version, resource, namespace: options.get("namespace") ?? "" };
  }
  if (parts[0] === "p" && parts.length === 2) return { page: "operator", name: parts[1] };
  if (parts[0] === "simulation") return { page: "simulation" };
  if (parts[0] === "load" && parts.length === 1) return { page: "load" };
  return { page: "missing" };
}

function withOptions(path: string, options: Record<string, string>): string {
  const query = new URLSearchParams(Object.entries(options).filter(([, value]) => value));
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

/** The fragment of a route; `parseRoute` gives the route back. */
export function formatRoute(route: Route): string {
  switch (route.page) {
    case "overview": return "#/";
    case "kind":
      return withOptions(`#/k/${part(route.group || NONE)}/${part(route.version)}/${part(route.resource)}`,
        { namespace: route.namespace, search: route.search, labels: route.labels });
    case "object":
      return withOptions(`#/o/${part(route.group || NONE)}/${part(route.version)}/${part(route.resource)}/${part(route.namespace || NONE)}/${part(route.name)}`,
        { tab: route.tab });
    case "create": return `#/create/${part(route.form)}`;
    case "new":
      return withOptions(`#/new/${part(route.group || NONE)}/${part(route.version)}/${part(route.resource)}`, { namespace: route.namespace });
    case "operator": return `#/p/${part(route.name)}`;
    case "simulation": return "#/simulation";
    case "load": return "#/load";
    case "missing": return "#/missing";
  }
}

export interface Target {
  apiVersion: string;
  resource: string;
  namespace?: string | null;
  name: string;
}

/** The group and version of an apiVersion: `v1` is of the core group, whose name is empty. */
export function splitVersion(apiVersion: string): { group: string; version: string } {
  const slash = apiVersion.lastIndexOf("/");
  return slash < 0 ? { group: "", version: apiVersion } : { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) };
}

export function objectAddress(target: Target, tab = ""): string {
  return formatRoute({ page: "object", ...splitVersion(target.apiVersion), resource: target.resource, namespace: target.namespace ?? "", name: target.name, tab });
}

export function kindAddress(kind: { apiVersion: string; resource: string }, namespace = "", labels = ""): string {
  return formatRoute({ page: "kind", ...splitVersion(kind.apiVersion), resource: kind.resource, namespace, search: "", labels });
}
