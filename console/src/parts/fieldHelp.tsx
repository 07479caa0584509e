// What the schema says about the field at the cursor of an editor.

import { useEffect, useMemo, useState } from "preact/hooks";
import type { Kind } from "../api/kinds";
import { openApi } from "../api/openapi";
import { schemaOfKind, typeText, type helpAt, type OpenApi } from "../pure/schema";
import { t } from "../texts";

/** The schemas of a kind's group and version, empty until they are there, and the kind's own. */
export function useSchema(kind: Kind) {
  const [schemas, setSchemas] = useState<OpenApi>({});
  useEffect(() => { openApi(kind.apiVersion).then(setSchemas, () => setSchemas({})); }, [kind]);
  const root = useMemo(() => schemaOfKind(schemas, kind.group, kind.version, kind.kind), [schemas, kind]);
  return { schemas, root };
}

const pathText = (path: string[]): string => path.join(".").replaceAll(".[]", "[]");

export function FieldHelp({ schemas, path, help }: { schemas: OpenApi; path: string[]; help: ReturnType<typeof helpAt> }) {
  return (
    <aside class="field-help" tabIndex={0} aria-label={t("yaml.help")}>
      {path.length > 0 && <p><code>{pathText(help?.path ?? path)}</code> {help && <span class="quiet">{typeText(schemas, help.schema)}</span>}</p>}
      <p>{path.length > 0 ? help?.schema.description ?? t("yaml.noHelp") : t("yaml.help")}</p>
    </aside>
  );
}
