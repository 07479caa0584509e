"""Make src/konverge/apiserver/data/schema/*.json.gz: the types of the built-in kinds.

Two sources, both of the same Kubernetes release: OpenAPI v3 (list types, map types, defaults of key fields) out of the
`k8s.io/kubernetes` module, and Go's reflection on the API structs (omitempty, pointers, embedding, names of Go types,
patch tags), dumped by tools/schema_types/main.go. Needs `go` and its module registry.

One file for each group-version; in it one line for each struct, `Name json`, so that the server parses only the structs
that a request needs. The form of a line is described at `Struct line` below and read by konverge.apiserver.schema.
"""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from konverge.apiserver.kubernetes_version import KUBERNETES_VERSION, LIBRARY_VERSION

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "src/konverge/apiserver/data/schema"
MODULES = ("apimachinery", "api", "client-go", "apiextensions-apiserver", "kube-aggregator")
CUSTOM = {
    "resource.Quantity": "quantity",
    "v1.Time": "time",
    "v1.MicroTime": "microtime",
    "intstr.IntOrString": "intOrString",
    "runtime.RawExtension": "rawExtension",
    "v1.FieldsV1": "fieldsV1",
    "v1.JSON": "json",
    "v1.JSONSchemaPropsOrArray": "schemaOrArray",
    "v1.JSONSchemaPropsOrBool": "schemaOrBool",
    "v1.JSONSchemaPropsOrStringArray": "schemaOrStrings",
}
META = ("DeleteOptions", "PartialObjectMetadata", "Status", "ObjectMeta")

Json = Any


def run(*command: str, cwd: Path) -> str:
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True).stdout


def reflected(work: Path) -> Json:
    """What Go's reflection says."""
    shutil.copy(ROOT / "tools/schema_types/main.go", work)
    requires = "\n".join(f"require k8s.io/{name} v{LIBRARY_VERSION}" for name in MODULES)
    (work / "go.mod").write_text(f"module schematypes\n\ngo 1.26\n\n{requires}\n")
    run("go", "mod", "tidy", cwd=work)
    return json.loads(run("go", "run", ".", cwd=work))


def openapi(work: Path) -> dict[str, Json]:
    """The schemas of all OpenAPI v3 documents by name."""
    module = json.loads(run("go", "mod", "download", "-json", f"k8s.io/kubernetes@v{KUBERNETES_VERSION}", cwd=work))
    schemas: dict[str, Json] = {}
    for path in sorted(Path(module["Dir"], "api/openapi-spec/v3").glob("*.json")):
        schemas |= json.loads(path.read_text()).get("components", {}).get("schemas", {})
    return schemas


def openapi_name(go_name: str) -> str:
    """k8s.io/api/core/v1.Pod -> io.k8s.api.core.v1.Pod"""
    host, _, rest = go_name.partition("/")
    return ".".join(reversed(host.split("."))) + "." + rest.replace("/", ".")


class Generator:
    def __init__(self, dump: Json, schemas: dict[str, Json]) -> None:
        self.structs: dict[str, list[Json]] = {openapi_name(n): fields or [] for n, fields in dump["structs"].items()}
        self.schemas = schemas
        self.chunks = self._chunks()
        self.kinds = {
            name
            for name, schema in schemas.items()
            if schema.get("x-kubernetes-group-version-kind") and "items" not in schema.get("properties", {})
        }

    def _chunks(self) -> dict[str, str]:
        """Package (io.k8s.api.rbac.v1) -> file (rbac_v1): the first label of the group, and the version."""
        chunks: dict[str, str] = {}
        for name, schema in self.schemas.items():
            gvks = schema.get("x-kubernetes-group-version-kind", [])
            if len(gvks) == 1:
                label = gvks[0]["group"].split(".")[0] or "core"
                chunks[name.rpartition(".")[0]] = f"{label}_{gvks[0]['version']}"
        return chunks | {"io.k8s.apimachinery.pkg.apis.meta.v1": "meta_v1"}

    def write(self, out: Path) -> int:
        lines: dict[str, list[str]] = {}
        for name in sorted(self.reachable()):
            package, _, short = name.rpartition(".")
            lines.setdefault(self.chunks[package], []).append(f"{short} {self.struct(name)}")
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        for chunk, text in lines.items():
            data = gzip.compress("\n".join(text).encode(), 9, mtime=0)
            (out / f"{chunk}.json.gz").write_bytes(data)
        return sum(p.stat().st_size for p in out.iterdir())

    def reachable(self) -> set[str]:
        todo = [n for n in self.kinds if n in self.structs]
        todo += [f"io.k8s.apimachinery.pkg.apis.meta.v1.{n}" for n in META]
        todo.append("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
        names: set[str] = set()
        while todo:
            name = todo.pop()
            if name not in names:
                names.add(name)
                todo += [r for f in self.structs[name] for r in self.refs(f["type"])]
        return names

    def refs(self, node: Json) -> list[str]:
        if node["kind"] == "struct":
            return [openapi_name(node["ref"])]
        return self.refs(node["elem"]) if "elem" in node else []

    def struct(self, name: str) -> str:
        """Struct line: [flags: 1 a kind, 2 an atomic map; fields].

        A field: [name, type, flags: 1 omitempty, 2 omitzero, 4 pointer; embedded; patch strategy; patch merge key],
        empty members at the end left out.
        """
        schema = self.schemas.get(name, {})
        properties = schema.get("properties", {})
        declared, known = set(properties), {f["name"] for f in self.structs[name]}
        if name in self.schemas and declared != known:
            raise SystemExit(f"{name}: OpenAPI and Go disagree on {sorted(declared ^ known)}")
        flags = (name in self.kinds) | 2 * (schema.get("x-kubernetes-map-type") == "atomic")
        fields = [self.field(f, properties.get(f["name"], {})) for f in self.structs[name]]
        return json.dumps([flags, fields], separators=(",", ":"))

    def field(self, field: Json, schema: Json) -> list[Json]:
        flags = {"omitempty": 1, "omitzero": 2}.get(field.get("omit"), 0) | 4 * field.get("pointer", False)
        out = [field["name"], self.type(field["type"], schema), flags, field.get("embedded", "")]
        out += [field.get("strategy", ""), field.get("mergeKey", "")]
        while out[-1] in ("", 0):
            out.pop()
        return out

    def type(self, node: Json, schema: Json) -> Json:
        """A type: "@chunk.Struct" ("@!" when atomic here, "@~" when granular here), a scalar "kind" or "kind:GoName",
        ["list", element, list type, keys, defaults of keys, Go name] or ["map", element, atomic, Go name]."""
        kind, go = node["kind"], node["go"]
        atomic = schema.get("x-kubernetes-map-type") == "atomic"
        if kind == "struct":
            package, _, short = openapi_name(node["ref"]).rpartition(".")
            granular = schema.get("x-kubernetes-map-type") == "granular"
            return f"@{'!' * atomic}{'~' * granular}{self.chunks[package]}.{short}"
        if kind == "custom":
            return CUSTOM[go]
        if kind == "map":
            named = [] if go.startswith("map[string]") else [go]
            return ["map", self.type(node["elem"], schema.get("additionalProperties", {})), int(atomic), *named]
        if kind == "slice":
            return self.list(node, schema)
        return kind if go in (kind, "[]uint8") else f"{kind}:{go}"

    def list(self, node: Json, schema: Json) -> Json:
        relation, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys", [])
        if relation is None and schema.get("x-kubernetes-patch-strategy", "").startswith("merge"):
            key = schema.get("x-kubernetes-patch-merge-key")
            relation, keys = ("map", [key]) if key else ("set", [])
        element = node["elem"]
        defaults = {}
        if keys:
            properties = self.schemas.get(openapi_name(element["ref"]), {}).get("properties", {})
            defaults = {k: properties[k]["default"] for k in keys if "default" in properties.get(k, {})}
        named = [] if node["go"].startswith("[]") else [node["go"]]
        out = ["list", self.type(element, schema.get("items", {})), relation or "atomic", keys, defaults, *named]
        while out[-1] in ([], {}, "atomic"):
            out.pop()
        return out


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        generator = Generator(reflected(work), openapi(work))
        size = generator.write(OUT)
    print(f"{len(generator.reachable())} structs, {size / 1024:.0f} KB in {OUT}", file=sys.stderr)


if __name__ == "__main__":
    main()
