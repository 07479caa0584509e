// The form for a Nacos as an object of the API. Only filled fields are sent: the cluster adds its defaults.

export interface NacosForm {
  name: string; namespace: string; type: string; replicas: string; version: string; image: string;
  cpuRequest: string; cpuLimit: string; memoryRequest: string; memoryLimit: string;
  database: string; host: string; port: string; schema: string; secret: string; size: string; storageClass: string;
}

export const EMPTY_FORM: NacosForm = {
  name: "", namespace: "default", type: "standalone", replicas: "3", version: "", image: "", cpuRequest: "", cpuLimit: "", memoryRequest: "", memoryLimit: "",
  database: "embedded", host: "", port: "", schema: "nacos", secret: "", size: "", storageClass: "",
};

type Fields = Record<string, unknown>;

function filled(fields: Fields): Fields | undefined {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined && value !== "");
  return given.length ? Object.fromEntries(given) : undefined;
}

function database(form: NacosForm): Fields {
  const secret = form.secret.trim() ? { name: form.secret.trim() } : undefined;
  const [host, port, schema] = [form.host.trim(), form.port.trim(), form.schema.trim()];
  if (form.database === "mysql") {
    return { database: filled({ type: "mysql", mysqlHost: host, mysqlPort: port, mysqlDb: schema, mysqlCredentialsSecretRef: secret }) };
  }
  if (form.database === "postgresql") return { database: { type: "postgresql" }, postgres: filled({ host, port, database: schema, credentialsSecretRef: secret }) };
  return { database: { type: "embedded" } };
}

export function nacosOf(form: NacosForm, apiVersion: string): Fields {
  const resources = filled({
    requests: filled({ cpu: form.cpuRequest.trim(), memory: form.memoryRequest.trim() }), limits: filled({ cpu: form.cpuLimit.trim(), memory: form.memoryLimit.trim() }),
  });
  const spec: Fields = { type: form.type, ...database(form), ...(form.image ? { image: form.image } : {}) };
  if (form.type === "cluster") spec.replicas = Number(form.replicas);
  if (resources) spec.resources = resources;
  if (form.size.trim()) spec.volume = { enabled: true, requests: { storage: form.size.trim() }, ...(form.storageClass.trim() ? { storageClass: form.storageClass.trim() } : {}) };
  return { apiVersion, kind: "Nacos", metadata: { name: form.name.trim(), namespace: form.namespace.trim() }, spec };
}

/** Which input a refused field belongs to. */
export function inputOf(field: string): keyof NacosForm | null {
  const path = field.replace(/^\//, "").replaceAll("/", ".");
  const inputs: [RegExp, keyof NacosForm][] = [
    [/^metadata\.name$/, "name"], [/^metadata\.namespace$/, "namespace"], [/^spec\.type$/, "type"], [/^spec\.replicas$/, "replicas"], [/^spec\.image$/, "version"],
    [/^spec\.resources\.requests(\.|\[)"?cpu/, "cpuRequest"], [/^spec\.resources\.limits(\.|\[)"?cpu/, "cpuLimit"],
    [/^spec\.resources\.requests(\.|\[)"?memory/, "memoryRequest"], [/^spec\.resources\.limits(\.|\[)"?memory/, "memoryLimit"],
    [/^spec\.(database\.mysqlHost|postgres\.host)$/, "host"], [/^spec\.(database\.mysqlPort|postgres\.port)$/, "port"], [/^spec\.(database\.mysqlDb|postgres\.database)$/, "schema"],
    [/^spec\.(database\.mysqlCredentialsSecretRef|postgres\.credentialsSecretRef)/, "secret"], [/^spec\.(database(\.type)?|postgres)$/, "database"],
    [/^spec\.volume\.requests/, "size"], [/^spec\.volume\.storageClass/, "storageClass"],
  ];
  return inputs.find(([pattern]) => pattern.test(path))?.[1] ?? null;
}
