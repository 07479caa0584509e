"""Makes src/konverge/apiserver/data/gotypes.json.gz: the server's internal structs, as error messages print them.

    python tools/make_gotypes.py <folder of the Go module cache, with k8s.io/api@…, k8s.io/kubernetes@… and
                                 k8s.io/apiextensions-apiserver@… in it>

A refusal of a whole struct prints the internal Go struct, which has no JSON tags: Go's names, in Go's order, with every
field. That is read from the struct declarations of the Kubernetes modules (Apache-2.0).

    {"apps.DeploymentStrategy": [["Type", "type", "", "s"], …], "meta.LabelSelector": […]}

A field is [name in messages, JSON name, flags, type]. Flags: `o` omitempty, `z` omitzero. A type is a run of `*`
(pointer), `[]` (list), `{}` (map) and then a struct's name or `s` string, `i` integer, `b` boolean, `f` float,
`y` bytes, `Q` quantity, `T` time, `P` IntOrString, `?` anything else.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path

TARGET = Path(__file__).parent.parent / "src/konverge/apiserver/data/gotypes.json.gz"
GROUPS = """
    admissionregistration apps autoscaling batch certificates coordination core discovery events flowcontrol networking
    node policy rbac resource scheduling storage storagemigration
""".split()  # noqa: SIM905
STABLE = re.compile(r"v\d+")
SCALARS = {"string": "s", "bool": "b", "byte": "i", "float64": "f", "float32": "f", "[]byte": "y", "interface{}": "?"}
SCALARS |= dict.fromkeys(("int", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))), "i")
SPECIAL = {
    "resource.Quantity": "Q", "metav1.Time": "T", "metav1.MicroTime": "T", "intstr.IntOrString": "P",
    "runtime.RawExtension": "?", "runtime.Object": "?", "metav1.FieldsV1": "?", "runtime.Unknown": "?",
    "metav1.Duration": "?", "types.NodeName": "s", "types.UID": "s",
}  # fmt: skip
META = {"TypeMeta", "ObjectMeta", "ListMeta", "LabelSelector", "LabelSelectorRequirement", "OwnerReference",
        "ManagedFieldsEntry", "Condition"}  # fmt: skip

Declaration = list[tuple[str, str, str]]
"""(Go name or "" when embedded, JSON tag, Go type) of each field."""


class Package:
    """The struct and named types of one Go package."""

    def __init__(self, label: str, folder: Path) -> None:
        self.label = label
        self.structs: dict[str, Declaration] = {}
        self.named: dict[str, str] = {}
        self.imports: dict[str, str] = {}
        for file in sorted(folder.glob("*types*.go")):
            self._read(re.sub(r"/\*.*?\*/", "", re.sub(r"//.*", "", file.read_text()), flags=re.S))

    def _read(self, text: str) -> None:
        for alias, path in re.findall(r'^\t(\w*) ?"([^"]+)"', text, re.M):
            self.imports[alias or path.rsplit("/", 1)[-1]] = path
        for name, body in re.findall(r"^type (\w+) struct \{\n(.*?)^\}", text, re.M | re.S):
            self.structs[name] = list(filter(None, map(_field, body.splitlines())))
        for name, base in re.findall(r"^type (\w+) ((?!struct)[^\n=]+)$", text, re.M):
            self.named[name] = base.strip()
        for block in re.findall(r"^type \(\n(.*?)^\)", text, re.M | re.S):
            self.named |= dict(re.findall(r"^\t(\w+) (\w+)$", block, re.M))


def _field(line: str) -> tuple[str, str, str] | None:
    line = line.strip()
    if not line:
        return None
    tag = re.search(r'json:"([^"]*)"', line)
    parts = re.sub(r"`.*", "", line).split(None, 1)
    if len(parts) == 1:
        return "", tag.group(1) if tag else "", parts[0]
    return parts[0], tag.group(1) if tag else "", parts[1].strip()


class Packages:
    """All packages, to find what a type expression means."""

    def __init__(self, modules: Path) -> None:
        api = next(modules.glob("k8s.io/api@*"))
        machinery = next(modules.glob("k8s.io/apimachinery@*"))
        internal = next(modules.glob("k8s.io/kubernetes@*")) / "pkg/apis"
        self.meta = Package("meta", machinery / "pkg/apis/meta/v1")
        self.external: dict[str, Package] = {}
        self.internal = {group: Package(group, internal / group) for group in GROUPS}
        extensions = next(modules.glob("k8s.io/apiextensions-apiserver@*")) / "pkg/apis/apiextensions"
        self.internal["apiextensions"] = Package("apiextensions", extensions)
        self.external["apiextensions/v1"] = Package("apiextensions/v1", extensions / "v1")
        for group in GROUPS:
            for folder in (api / group).iterdir():
                if folder.is_dir() and STABLE.fullmatch(folder.name):
                    label = f"{group}/{folder.name}"
                    self.external[label] = Package(label, folder)

    def resolve(self, package: Package, name: str) -> tuple[Package, str]:
        """The package and the plain name of a (qualified) type name."""
        if "." not in name:
            return package, name
        alias, plain = name.split(".")
        path = package.imports.get(alias, "")
        if path.endswith("meta/v1"):
            return self.meta, plain
        parts = path.split("/")
        if path.startswith("k8s.io/api/"):
            return self.external.get("/".join(parts[-2:]), self.meta), plain
        return self.internal.get(parts[-1], self.meta), plain

    def type(self, package: Package, expression: str) -> str:
        """A Go type in the compact form."""
        if expression in SCALARS:
            return SCALARS[expression]
        if expression.startswith("*"):
            return "*" + self.type(package, expression[1:])
        if expression.startswith("[]"):
            return "[]" + self.type(package, expression[2:])
        if mapping := re.match(r"map\[[\w.]+\](.*)", expression):
            return "{}" + self.type(package, mapping.group(1))
        owner, name = self.resolve(package, expression)
        if special := SPECIAL.get(expression) or (owner is self.meta and SPECIAL.get(f"metav1.{name}")):
            return special
        if name in owner.structs and (owner is not self.meta or name in META):
            return f"{owner.label}.{name}"
        return self.type(owner, owner.named[name]) if name in owner.named else "?"


def _tagged_fields(packages: Packages, package: Package, struct: str) -> list[list[str]]:
    fields: list[list[str]] = []
    for name, tag, expression in package.structs[struct]:
        json_name, _, options = tag.partition(",")
        if json_name == "-":
            continue
        if not name and not json_name:
            owner, plain = packages.resolve(package, expression.lstrip("*"))
            fields += _tagged_fields(packages, owner, plain)
            continue
        fields.append([json_name or name, _flags(options), packages.type(package, expression)])
    return fields


def _flags(options: str) -> str:
    return ("o" if "omitempty" in options else "") + ("z" if "omitzero" in options else "")


def internal(packages: Packages) -> dict[str, list[list[str]]]:
    types = {f"meta.{name}": _meta_fields(packages, name) for name in META}
    for group, package in packages.internal.items():
        for name in package.structs:
            if not name.endswith("List"):
                types[f"{group}.{name}"] = _internal_fields(packages, package, name)
    return types


def _meta_fields(packages: Packages, struct: str) -> list[list[str]]:
    return [[name, name, flags, kind] for name, flags, kind in _tagged_fields(packages, packages.meta, struct)]


def _internal_fields(packages: Packages, package: Package, struct: str) -> list[list[str]]:
    fields: list[list[str]] = []
    for name, tag, expression in package.structs[struct]:
        if not name and not tag.split(",")[0]:
            owner, plain = packages.resolve(package, expression.lstrip("*"))
            if owner is packages.meta:
                fields += _meta_fields(packages, plain)
            else:
                fields += _internal_fields(packages, owner, plain)
            continue
        json_name, _, options = tag.partition(",")
        spelled = json_name or name
        at = _json_name(packages, package.label, struct, name)
        fields.append([spelled, at, _flags(options), packages.type(package, expression)])
    return fields


def _json_name(packages: Packages, group: str, struct: str, name: str) -> str:
    """The JSON name of the same field in an external version, newest first; else Go's name with a small start."""
    for label in sorted((label for label in packages.external if label.startswith(f"{group}/")), reverse=True):
        for go_name, tag, _ in packages.external[label].structs.get(struct, []):
            if go_name == name and tag:
                return tag.partition(",")[0]
    return name[:1].lower() + name[1:]


def main() -> None:
    packages = Packages(Path(sys.argv[1]))
    types = internal(packages)
    text = json.dumps(types, separators=(",", ":"), sort_keys=True).encode()
    TARGET.write_bytes(gzip.compress(text, 9, mtime=0))
    print(f"{TARGET}: {TARGET.stat().st_size} bytes, {len(types)} types")


if __name__ == "__main__":
    main()
