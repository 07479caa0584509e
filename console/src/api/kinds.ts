// What the API server serves, by discovery; and the addresses of objects.

import { signal } from "@preact/signals";
import { get } from "./http";

export interface Kind {
  group: string;
  version: string;
  apiVersion: string;
  kind: string;
  resource: string;
  namespaced: boolean;
  verbs: string[];
  shortNames: string[];
  subresources: string[];
}

interface DiscoveryResource {
  resource: string;
  responseKind?: { kind: string };
  scope: string;
  shortNames?: string[];
  verbs: string[];
  subresources?: { subresource: string }[];
}
interface DiscoveryGroup {
  metadata?: { name?: string };
  versions: { version: string; resources?: DiscoveryResource[] }[];
}

const AGGREGATED = ["v2", "v2beta1"].map((version) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`).join(",");

/** The kinds of the preferred version of each group; a resource that only an older version has comes from there. */
export function kindsOf(groups: DiscoveryGroup[]): Kind[] {
  const kinds: Kind[] = [];
  for (const entry of groups) {
    const group = entry.metadata?.name ?? "";
    const seen = new Set<string>();
    for (const { version, resources } of entry.versions) {
      for (const item of resources ?? []) {
        if (seen.has(item.resource) || !item.verbs.includes("list")) continue;
        seen.add(item.resource);
        kinds.push({
          group, version, apiVersion: group ? `${group}/${version}` : version, kind: item.responseKind?.kind ?? item.resource,
          resource: item.resource, namespaced: item.scope === "Namespaced", verbs: item.verbs, shortNames: item.shortNames ?? [],
          subresources: (item.subresources ?? []).map((inner) => inner.subresource),
        });
      }
    }
  }
  return kinds.sort((a, b) => a.kind.localeCompare(b.kind) || a.group.localeCompare(b.group));
}

export const kinds = signal<Kind[]>([]);

export async function discover(): Promise<void> {
  const [core, named] = await Promise.all(["/k8s/api", "/k8s/apis"].map((path) => get<{ items?: DiscoveryGroup[] }>(path, { accept: AGGREGATED })));
  kinds.value = kindsOf([...(core.items ?? []), ...(named.items ?? [])]);
}

export function findKind(group: string, version: string, resource: string): Kind | undefined {
  const all = kinds.value.filter((kind) => kind.group === group && kind.resource === resource);
  return all.find((kind) => kind.version === version) ?? all[0];
}

export function kindByName(apiVersion: string, name: string): Kind | undefined {
  const group = apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.lastIndexOf("/")) : "";
  return kinds.value.find((kind) => kind.group === group && kind.kind === name);
}

export interface Place { group: string; version: string; resource: string; namespace?: string; name?: string }

/** The address of a collection or an object behind the proxy.
 *
 *  apiPath({ group: "apps", version: "v1", resource: "deployments", namespace: "a", name: "b" }, "scale")
 *  // /k8s/apis/apps/v1/namespaces/a/deployments/b/scale
 */
export function apiPath(place: Place, subresource = ""): string {
  const root = place.group ? `/k8s/apis/${place.group}/${place.version}` : `/k8s/api/${place.version}`;
  const space = place.namespace ? `/namespaces/${encodeURIComponent(place.namespace)}` : "";
  const name = place.name ? `/${encodeURIComponent(place.name)}` : "";
  return `${root}${space}/${place.resource}${name}${subresource ? `/${subresource}` : ""}`;
}
