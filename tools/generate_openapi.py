"""Generates src/konverge/apiserver/data/openapi.zip: the OpenAPI documents of the built-in API, taken apart.

    python -m tools.generate_openapi

A real kube-apiserver (tools/real_binaries.py) is started and asked for its documents. What they have in common is kept
once, so that 9 MB become a quarter of one:

- `schemas/PACKAGE`: a line `name json` for each schema of a package.
- `v3/GROUP-VERSION`: first line the names of the document's schemas, second line its paths.
- `v2`: the paths, then the parameters of the OpenAPI v2 document (its definitions are the schemas, converted).
- `index.json`: the hashes of the v3 documents (as konverge.apiserver.openapi joins them), the names of the
  schemas that documents of custom kinds need, and the group-versions that these documents do not list.
- `custom/…`: the paths of a custom kind, by scope and generation, with %PLACEHOLDERS% for its names. They are recorded
  from sample definitions.
"""

from __future__ import annotations

import json
import re
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

from tools import real_binaries
from tools.control_plane import ControlPlane
from tools.generate_tables import ask

TARGET = Path(__file__).resolve().parent.parent / "src/konverge/apiserver/data/openapi.zip"
GROUP, VERSION = "zzgroup.example.com", "v77"
KINDS = "x-kubernetes-group-version-kind"
IN_EVERY_GROUP = [f"io.k8s.apimachinery.pkg.apis.meta.v1.{kind}" for kind in ("DeleteOptions", "WatchEvent")]
SAMPLES = {"namespaced": ("zznamespaceds", "ZzNamespaced"), "cluster": ("zzclusters", "ZzCluster")}

Json = Any


def compact(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def definition(plural: str, kind: str, scope: str) -> Json:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": scale},
    }
    names = {"plural": plural, "kind": kind}
    spec = {"group": GROUP, "scope": scope.capitalize(), "names": names, "versions": [version]}
    return {"apiVersion": "apiextensions.k8s.io/v1", "metadata": {"name": f"{plural}.{GROUP}"}, "spec": spec}


def placeholders(text: str, plural: str, kind: str) -> str:
    """The names of a sample, replaced by what they stand for."""
    replaced = {
        GROUP: "%GROUP%",
        "com.example.zzgroup": "%MODEL%",
        f"zzgroupExampleCom_{VERSION}": "%TAG%",
        f"ZzgroupExampleCom{VERSION.upper()}": "%OPERATION%",
        VERSION: "%VERSION%",
        plural: "%PLURAL%",
        f"{kind}List": "%LISTKIND%",
        kind: "%KIND%",
    }
    for name, placeholder in replaced.items():
        text = text.replace(name, placeholder)
    assert not re.search("zz", text, re.IGNORECASE), text
    return text


def templates(paths: Json) -> dict[str, str]:
    """The paths of the sample definitions, by scope."""
    texts = {}
    for scope, (plural, kind) in SAMPLES.items():
        own = {path: item for path, item in paths.items() if f"/{plural}" in path}
        texts[scope] = placeholders(compact(own), plural, kind)
    return texts


def package(name: str) -> str:
    return name.rpartition(".")[0]


def _complete(paths: Json) -> bool:
    return all(any(plural in path for path in paths) for plural, _ in SAMPLES.values())


def collect(plane: ControlPlane) -> dict[str, Json]:
    """The real documents; under "v2" that of OpenAPI v2. Those of the samples appear after a while."""
    for scope, (plural, kind) in SAMPLES.items():
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        ask(plane, path, definition(plural, kind, scope))
    sample = f"apis/{GROUP}/{VERSION}"
    for _ in range(120):
        index, v2 = plane.get("/openapi/v3")["paths"], plane.get("/openapi/v2")
        v3 = plane.get(index[sample]["serverRelativeURL"]) if sample in index else {"paths": {}}
        if _complete(v2["paths"]) and _complete(v3["paths"]):
            break
        time.sleep(0.5)
    documents = {name: plane.get(entry["serverRelativeURL"]) for name, entry in index.items()}
    return {**documents, "v2": v2}


def elsewhere(all_schemas: Json, sample: Json) -> list[list[str]]:
    """The group-versions of which a document of custom kinds does not say that they have DeleteOptions."""
    lists = [schemas[IN_EVERY_GROUP[0]][KINDS] for schemas in (all_schemas, sample)]
    known, listed = ({(kind["group"], kind["version"]) for kind in kinds} for kinds in lists)
    return [list(pair) for pair in sorted(known - listed)]


def members(documents: dict[str, Json]) -> dict[str, str]:
    """The members of the archive, but for the index."""
    v2 = documents.pop("v2")
    sample = documents.pop(f"apis/{GROUP}/{VERSION}")
    schemas: dict[str, Json] = {}
    for document in documents.values():
        schemas |= document["components"].get("schemas", {})
    for name in IN_EVERY_GROUP:
        schemas[name] = {**schemas[name], KINDS: v2["definitions"][name][KINDS]}
    files: dict[str, str] = {}
    for name in sorted(schemas):
        key = f"schemas/{package(name)}"
        files[key] = files.get(key, "") + f"{name} {compact(schemas[name])}\n"
    for name, document in documents.items():
        names = " ".join(document["components"].get("schemas", {}))
        files[f"v3/{name}"] = f"{names}\n{compact(document['paths'])}\n"
    paths = {path: item for path, item in v2["paths"].items() if GROUP not in path}
    files["v2"] = f"{compact(paths)}\n{compact(v2['parameters'])}\n"
    for generation, recorded in (("v3", sample), ("v2", v2)):
        for scope, text in templates(recorded["paths"]).items():
            files[f"custom/{scope}.{generation}"] = text
    return files


def write(files: dict[str, str]) -> None:
    with zipfile.ZipFile(TARGET, "w", zipfile.ZIP_LZMA) as archive:
        for name, text in sorted(files.items()):
            info = zipfile.ZipInfo(name)  # no time of day: the same input gives the same file
            info.compress_type = zipfile.ZIP_LZMA
            archive.writestr(info, text)


def main() -> int:
    binaries, note = real_binaries.find()
    if binaries is None:
        print(note, file=sys.stderr)
        return 1
    with ControlPlane(binaries) as plane:
        documents = collect(plane)
    sample = documents[f"apis/{GROUP}/{VERSION}"]["components"]["schemas"]
    custom = [name for name in sample if name.startswith("io.k8s.")]
    unknown = elsewhere(documents["v2"]["definitions"], sample)
    files = members(documents)
    index: Json = {"documents": dict.fromkeys(documents, ""), "custom": custom, "elsewhere": unknown}
    write({**files, "index.json": compact(index)})
    from konverge.apiserver.http.respond import etag_of
    from konverge.apiserver.openapi import builtin

    index["documents"] = {name: etag_of(builtin.document(name)) for name in documents}
    write({**files, "index.json": compact(index)})
    print(f"{TARGET}: {len(documents)} documents, {TARGET.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
