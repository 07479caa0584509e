"""Generates konverge.objects.kinds from the OpenAPI document and the Go types of Kubernetes.

    python tools/generate_kinds.py            # downloads the Go modules with `go mod download`, writes the modules

The OpenAPI v3 document says which types, fields and kinds there are; the `json:` tags of the Go types say which lists
and maps a server may send as null (those without `omitempty`).

For people and their editors there is a stub beside each module: the same classes with upstream's descriptions as
docstrings, and with the values of enumerations (`Literal["Always", …] | str`: a newer server may send others, and they
are decoded). What runs is the module, which has neither: an import costs no more because of them. The enumerations are
those of the documents that a real server serves (tools/generate_openapi.py); the documents in its source have none.
"""

from __future__ import annotations

import json
import keyword
import re
import subprocess
import sys
import tempfile
import textwrap
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from konverge.apiserver.kubernetes_version import KUBERNETES_VERSION, LIBRARY_VERSION

SOURCE = Path(__file__).resolve().parents[1] / "src/konverge"
TARGET = SOURCE / "objects/kinds"
RECORDED = SOURCE / "apiserver/data/openapi.zip"

Schema = dict[str, Any]

# group-version → (module, prefix of its types in OpenAPI, Go package)
GROUPS = {
    "v1": ("core_v1", "io.k8s.api.core.v1", "api/core/v1"),
    "admissionregistration.k8s.io/v1": ("admissionregistration_v1", "io.k8s.api.admissionregistration.v1", ""),
    "apiextensions.k8s.io/v1": (
        "apiextensions_v1",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
        "apiextensions-apiserver/pkg/apis/apiextensions/v1",
    ),
    "apiregistration.k8s.io/v1": (
        "apiregistration_v1",
        "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1",
        "kube-aggregator/pkg/apis/apiregistration/v1",
    ),
    "apps/v1": ("apps_v1", "io.k8s.api.apps.v1", ""),
    "authentication.k8s.io/v1": ("authentication_v1", "io.k8s.api.authentication.v1", ""),
    "authorization.k8s.io/v1": ("authorization_v1", "io.k8s.api.authorization.v1", ""),
    "autoscaling/v1": ("autoscaling_v1", "io.k8s.api.autoscaling.v1", ""),
    "autoscaling/v2": ("autoscaling_v2", "io.k8s.api.autoscaling.v2", ""),
    "batch/v1": ("batch_v1", "io.k8s.api.batch.v1", ""),
    "certificates.k8s.io/v1": ("certificates_v1", "io.k8s.api.certificates.v1", ""),
    "coordination.k8s.io/v1": ("coordination_v1", "io.k8s.api.coordination.v1", ""),
    "discovery.k8s.io/v1": ("discovery_v1", "io.k8s.api.discovery.v1", ""),
    "events.k8s.io/v1": ("events_v1", "io.k8s.api.events.v1", ""),
    "flowcontrol.apiserver.k8s.io/v1": ("flowcontrol_v1", "io.k8s.api.flowcontrol.v1", ""),
    "networking.k8s.io/v1": ("networking_v1", "io.k8s.api.networking.v1", ""),
    "node.k8s.io/v1": ("node_v1", "io.k8s.api.node.v1", ""),
    "policy/v1": ("policy_v1", "io.k8s.api.policy.v1", ""),
    "rbac.authorization.k8s.io/v1": ("rbac_v1", "io.k8s.api.rbac.v1", ""),
    "resource.k8s.io/v1": ("resource_v1", "io.k8s.api.resource.v1", ""),
    "scheduling.k8s.io/v1": ("scheduling_v1", "io.k8s.api.scheduling.v1", ""),
    "storage.k8s.io/v1": ("storage_v1", "io.k8s.api.storage.v1", ""),
    "storagemigration.k8s.io/v1": ("storagemigration_v1", "io.k8s.api.storagemigration.v1", ""),
}
MODULE_OF_PREFIX = {prefix: module for module, prefix, _ in GROUPS.values()}

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
SCALARS = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": ("Quantity", "Quantity"),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": ("IntOrString", "int"),
    "io.k8s.apimachinery.pkg.runtime.RawExtension": ("dict[str, Any]", "dict"),
    META + "Time": ("str | None", "_none"),
    META + "MicroTime": ("str | None", "_none"),
    META + "FieldsV1": ("dict[str, Any]", "dict"),
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": ("Any", "_none"),
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray": (
        "JSONSchemaProps | list[JSONSchemaProps]",
        "dict",
    ),
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool": (
        "JSONSchemaProps | bool",
        "bool",
    ),
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray": (
        "JSONSchemaProps | list[str]",
        "dict",
    ),
}
TYPING = ("Any", "ClassVar", "Literal")
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
# Names that annotations of the same class use: a field called so gets an underscore.
RESERVED = {*keyword.kwlist, "bool", "int", "str", "float", "list", "dict", "resource", "meta"}


# ── sources ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def module_directory(module: str, version: str) -> Path:
    """Where Go keeps a module, downloaded if needed."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["go", "mod", "init", "x"], cwd=folder, check=True, capture_output=True)
        answer = subprocess.run(
            ["go", "mod", "download", "-json", f"{module}@v{version}"], cwd=folder, check=True, capture_output=True
        )
    return Path(json.loads(answer.stdout)["Dir"])


STRUCT = re.compile(r"^type (\w+) struct \{$(.*?)^\}$", re.MULTILINE | re.DOTALL)
ALWAYS_SENT = re.compile(r'^\t\w+\s+(?:\[\]|map\[)\S+\s+`json:"(\w+)"', re.MULTILINE)


def nullable_fields(package: Path) -> dict[str, set[str]]:
    """Type → the JSON names of lists and maps that Go sends even when there are none, as null."""
    nullable: dict[str, set[str]] = {}
    for source in sorted(package.glob("*types.go")):
        for name, body in STRUCT.findall(source.read_text()):
            if names := set(ALWAYS_SENT.findall(body)):
                nullable[name] = names
    return nullable


# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def snake(name: str) -> str:
    """The Python name of a JSON field: `clusterIPs` → `cluster_ips`, `x-kubernetes-…` → `x_kubernetes_…`."""
    name = name.lstrip("$").replace("-", "_")
    name = re.sub(r"([A-Z]{2,})s(?=[A-Z]|$)", lambda m: m[1].capitalize() + "s", name)
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()
    return name + "_" if name in RESERVED else name


def camel(name: str) -> str:
    """What msgspec makes of a Python name."""
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


# ── one module ───────────────────────────────────────────────────────────────────────────────────────────────────────


Enums = dict[str, dict[str, list[str]]]
"""Full name of a type -> JSON name of a field -> its values."""


@dataclass
class Module:
    """The types of one group-version on their way to Python text."""

    api_version: str
    name: str
    prefix: str
    schemas: dict[str, Schema]
    plurals: dict[str, tuple[str, bool]]
    nullable: dict[str, set[str]]
    enums: Enums
    is_stub: bool = False
    imports: set[str] = field(default_factory=set)
    status_types: set[str] = field(default_factory=set)

    def kinds(self) -> list[str]:
        return [name for name in self.own() if self.is_kind(name)]

    def own(self) -> list[str]:
        """The names of this group-version's types, dependencies first, so that classes can be named as they are."""
        ordered: dict[str, None] = {}

        def visit(name: str, path: tuple[str, ...]) -> None:
            if name in ordered or name in path:
                return
            for needed in sorted(self.references(name)):
                visit(needed, (*path, name))
            ordered[name] = None

        for full in sorted(self.schemas):
            name = full.removeprefix(self.prefix + ".")
            if full.startswith(self.prefix + ".") and full not in SCALARS and not self.is_list(name):
                visit(name, ())
        return list(ordered)

    def references(self, name: str) -> set[str]:
        referenced = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(self.schema(name))))
        own = {
            full.removeprefix(self.prefix + ".")
            for full in referenced - set(SCALARS)
            if full.startswith(self.prefix + ".")
        }
        if name == "JSONSchemaProps":
            own.discard("JSONSchemaProps")
        return own

    def schema(self, name: str) -> Schema:
        return self.schemas[f"{self.prefix}.{name}"]

    def is_kind(self, name: str) -> bool:
        gvks = self.schema(name).get("x-kubernetes-group-version-kind", [])
        return len(gvks) == 1 and "metadata" in self.schema(name).get("properties", {})

    def is_list(self, name: str) -> bool:
        return name.endswith("List") and "items" in self.schema(name).get("properties", {}) and self.is_kind(name)

    def has_metadata(self, name: str) -> bool:
        """Kinds, and templates of kinds: their metadata, spec and status are never None."""
        return "ObjectMeta" in json.dumps(self.schema(name).get("properties", {}).get("metadata", {}).get("allOf", ""))

    def has_required(self, name: str) -> bool:
        """Whether an author has to give something to make one (a type of another group: yes, to be safe)."""
        return bool(self.schemas.get(f"{self.prefix}.{name}", {"required": True}).get("required"))

    # types

    def type_of(self, schema: Schema) -> tuple[str, str]:
        """(annotation, factory of the zero value) of a property."""
        if "allOf" in schema:
            schema = schema["allOf"][0]
        if reference := schema.get("$ref"):
            return self.referenced(reference.removeprefix("#/components/schemas/"))
        kind = schema.get("type")
        if kind == "array":
            return f"list[{self.element(schema['items'])}]", "list"
        if kind == "object":
            values = schema.get("additionalProperties")
            return f"dict[str, {self.element(values) if values else 'Any'}]", "dict"
        if kind in PLAIN:
            return PLAIN[kind], PLAIN[kind]
        return "Any", "_none"

    def element(self, schema: Schema) -> str:
        return self.type_of(schema)[0]

    def referenced(self, full: str) -> tuple[str, str]:
        if full in SCALARS:
            return SCALARS[full]
        if full.startswith(META):
            return f"meta.{full.removeprefix(META)}", f"meta.{full.removeprefix(META)}"
        prefix, _, name = full.rpartition(".")
        if prefix == self.prefix:
            return name, name
        module = MODULE_OF_PREFIX.get(prefix)
        if module is None:  # an alpha or beta part of a stable kind stays plain data
            return "dict[str, Any]", "dict"
        self.imports.add(module)
        return f"{module}.{name}", f"{module}.{name}"

    # text

    def field_line(self, owner: str, json_name: str, schema: Schema, *, required: bool) -> str:
        python = snake(json_name)
        annotation, factory = self.type_of(schema)
        alias = f'name="{json_name}"' if camel(python) != json_name else ""
        container = schema.get("type") in ("array", "object")
        values = self.enums.get(f"{self.prefix}.{owner}", {}).get(json_name)
        if values and annotation == "str" and self.is_stub:
            annotation = f"Literal[{', '.join(json.dumps(value) for value in values)}] | str"
        if json_name in self.nullable.get(owner, ()) and container:
            annotation = annotation.replace("list[", "NullableList[", 1).replace("dict[", "NullableMap[", 1)
        if self.has_metadata(owner) and json_name in ("metadata", "spec", "status") and not container:
            if json_name == "spec" and self.has_required(factory):
                return f"    {python}: {annotation} = _required({joined(factory, alias)})"
            return f"    {python}: {annotation} = _field({joined(f'default_factory={factory}', alias)})"
        if required and owner not in self.status_types:
            return f"    {python}: {annotation} = _required({joined(factory, alias)})"
        annotation, default = self.default(annotation, factory, container=container, zero=required)
        return f"    {python}: {annotation} = " + (
            f"_field({joined(f'default{default}', alias)})" if alias else default_text(default)
        )

    @staticmethod
    def default(annotation: str, factory: str, *, container: bool, zero: bool) -> tuple[str, str]:
        """The annotation and default of an optional field, or of any field of a status."""
        if container:
            return annotation, f"_factory={factory}"
        if zero and factory in ("str", "int", "bool", "float"):
            return annotation, {"str": '=""', "int": "=0", "bool": "=False", "float": "=0.0"}[factory]
        return annotation if annotation in ("Any",) or annotation.endswith("None") else f"{annotation} | None", "=None"

    def class_text(self, name: str) -> str:
        schema = self.schema(name)
        kind = self.is_kind(name)
        lines = [f"class {name}({'meta.Object' if kind else 'Model'}):", *self.docstring(schema)]
        if kind:
            lines += self.kind_lines(name)
        required = set(schema.get("required", ()))
        for json_name, part in sorted(schema.get("properties", {}).items(), key=lambda item: order(item[0], kind)):
            if not (kind and json_name in ("apiVersion", "kind", "metadata")):
                lines.append(self.field_line(name, json_name, part, required=json_name in required))
                lines += self.docstring(part)
        if len(lines) == 1:
            lines.append("    pass")
        return "\n".join(lines).rstrip() + "\n"

    def docstring(self, schema: Schema) -> list[str]:
        """Upstream's description, in a stub."""
        text = schema.get("description", "") if self.is_stub else ""
        if not text:
            return []
        text = text.replace("\\", "\\\\").replace('"' * 3, "'" * 3)
        lines = [textwrap.fill(line, 113, break_long_words=False, break_on_hyphens=False) for line in text.split("\n")]
        body = textwrap.indent("\n".join(lines), "    ").strip()
        end = "\n    " if "\n" in body or body.endswith('"') or len(body) > 110 else ""
        return [f'    """{body}{end}"""']

    def kind_lines(self, name: str) -> list[str]:
        group, _, version = self.api_version.rpartition("/")
        plural, namespaced = self.plurals.get(name, ("", True))
        arguments = f'"{group}", "{version}", "{name}", "{plural}"' + ("" if namespaced else ", namespaced=False")
        return [f"    resource: ClassVar[Resource] = Resource({arguments})"]

    def text(self) -> str:
        own = self.own()
        for name in own:
            status = self.schema(name).get("properties", {}).get("status") if self.is_kind(name) else None
            if status and "$ref" in json.dumps(status):
                self.status_types.add(self.type_of(status)[1])
        body = "\n\n".join(self.class_text(name) for name in own)
        return self.header(body) + body

    def header(self, body: str) -> str:
        imports = "".join(f"from konverge.objects.kinds import {module}\n" for module in sorted(self.imports))
        nullables = [word for word in ("NullableList", "NullableMap") if word + "[" in body]
        model = ["Model", *nullables]
        aliases = [("field", "_field"), ("required", "_required")]
        model += [f"{name} as {alias}" for name, alias in aliases if alias + "(" in body]
        origin = f"generated by tools/generate_kinds.py from Kubernetes {KUBERNETES_VERSION}; do not edit"
        lines = [
            f'"""{self.api_version}: {origin}."""\n',
            "from __future__ import annotations\n",
            f"from typing import {', '.join(name for name in TYPING if re.search(rf'[:[ ]{name}[][, ]', body))}\n",
            "from konverge.objects import meta",
            *(["from konverge.objects.int_or_string import IntOrString"] if "IntOrString" in body else []),
            f"from konverge.objects.model import {', '.join(model)}",
            *(["from konverge.objects.quantity import Quantity"] if "Quantity" in body else []),
            "from konverge.objects.resource import Resource",
        ]
        none = "\n\ndef _none() -> None:\n    return None\n" if "_required(_none" in body else ""
        return "\n".join(lines) + "\n" + imports + none + "\n\n"


def recorded_enums() -> Enums:
    """The values of enumerations, as a real server documents them."""
    enums: Enums = {}
    with zipfile.ZipFile(RECORDED) as recorded:
        for member in (name for name in recorded.namelist() if name.startswith("schemas/")):
            for line in recorded.read(member).decode().splitlines():
                name, _, text = line.partition(" ")
                properties: dict[str, Schema] = json.loads(text).get("properties", {})
                if values := {key: part["enum"] for key, part in properties.items() if "enum" in part}:
                    enums[name] = values
    return enums


def joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def default_text(default: str) -> str:
    return {"_factory=list": "[]", "_factory=dict": "{}"}.get(default, default.removeprefix("="))


def order(json_name: str, kind: bool) -> tuple[int, str]:
    """`status` stays last in a kind: that is how an empty one is recognised when encoding."""
    return (1 if kind and json_name == "status" else 0, json_name)


# ── kinds and where they are served ──────────────────────────────────────────────────────────────────────────────────


def served(paths: dict[str, Schema], root: str) -> Iterator[tuple[str, str, bool]]:
    """(kind, plural, namespaced) of every collection below the root."""
    for path, operations in paths.items():
        if not path.startswith(root + "/"):
            continue
        parts = path.removeprefix(root).strip("/").split("/")
        namespaced = parts[:2] == ["namespaces", "{namespace}"]
        parts = parts[2:] if namespaced and len(parts) > 2 else parts
        if len(parts) != 1 or not parts[0] or parts[0].startswith("{"):
            continue
        for verb in ("post", "get"):
            gvk = operations.get(verb, {}).get("x-kubernetes-group-version-kind")
            if gvk:
                yield gvk["kind"], parts[0], namespaced


def read_openapi(folder: Path) -> tuple[dict[str, Schema], dict[str, Schema]]:
    """All schemas and all paths: a type such as Scale is only mentioned in other groups' documents."""
    schemas: dict[str, Schema] = {}
    paths: dict[str, Schema] = {}
    for source in sorted(folder.glob("api*_openapi.json")):
        document = json.loads(source.read_text())
        schemas.update(document.get("components", {}).get("schemas", {}))
        paths.update(document["paths"])
    return schemas, paths


def load(api_version: str, schemas: dict[str, Schema], paths: dict[str, Schema], enums: Enums) -> Module:
    name, prefix, package = GROUPS[api_version]
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    plurals: dict[str, tuple[str, bool]] = {}
    for kind, plural, namespaced in served(paths, root):
        if kind not in plurals or namespaced:
            plurals[kind] = (plural, namespaced)
    package = package or f"api/{name.replace('_', '/')}"
    repository, _, folder = package.partition("/")
    nullable = nullable_fields(module_directory(f"k8s.io/{repository}", LIBRARY_VERSION) / folder)
    return Module(api_version, name, prefix, schemas, plurals, nullable, enums)


INDEX = '''"""The kinds of each module: generated by tools/generate_kinds.py from Kubernetes {version}; do not edit."""

from __future__ import annotations

MODULES: dict[str, tuple[str, tuple[str, ...]]] = {{
{lines}
}}
'''


def generate(target: Path) -> None:
    """Write all modules, stubs and the index."""
    schemas, paths = read_openapi(module_directory("k8s.io/kubernetes", KUBERNETES_VERSION) / "api/openapi-spec/v3")
    enums = recorded_enums()
    lines = []
    for api_version in GROUPS:
        module = load(api_version, schemas, paths, enums)
        (target / f"{module.name}.py").write_text(module.text())
        module.is_stub = True
        (target / f"{module.name}.pyi").write_text(module.text())
        kinds = ", ".join(f'"{kind}"' for kind in sorted(module.kinds()))
        lines.append(f'    "{api_version}": ("{module.name}", ({kinds},)),')
        print(f"{module.name}: {len(module.own())} types, {len(module.kinds())} kinds")
    (target / "_index.py").write_text(INDEX.format(version=KUBERNETES_VERSION, lines="\n".join(lines)))


def main() -> int:
    TARGET.mkdir(exist_ok=True)
    generate(TARGET)
    return 0


if __name__ == "__main__":
    sys.exit(main())
