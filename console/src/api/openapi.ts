// The schemas of a group, asked for once.

import type { OpenApi } from "../pure/schema";
import { get } from "./http";

const known = new Map<string, Promise<OpenApi>>();

async function load(apiVersion: string): Promise<OpenApi> {
  const index = await get<{ paths: Record<string, { serverRelativeURL: string }> }>("/k8s/openapi/v3");
  const entry = index.paths[apiVersion.includes("/") ? `apis/${apiVersion}` : `api/${apiVersion}`];
  return entry ? get<OpenApi>(`/k8s${entry.serverRelativeURL}`) : {};
}

export function openApi(apiVersion: string): Promise<OpenApi> {
  let document = known.get(apiVersion);
  if (!document) {
    document = load(apiVersion).catch((error: unknown) => {
      known.delete(apiVersion);
      throw error;
    });
    known.set(apiVersion, document);
  }
  return document;
}
