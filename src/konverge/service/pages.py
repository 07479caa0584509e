"""The page for people: the reference of the API, built from the OpenAPI document, and the files that it names.

The reference has no script and loads nothing from other hosts. The files are a fixed table: no path of a request
touches the disk.
"""

from __future__ import annotations

import hashlib
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from konverge.wire.message import Headers, Request, Response

Schema = dict[str, Any]

_DEEPEST = 6


def reference(document: Schema, url: str) -> str:
    """The whole page, with an example for the service at this URL."""
    info = document["info"]
    operations = [
        _operation(method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    schemas = [_schema(name, schema) for name, schema in sorted(document["components"]["schemas"].items())]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(info["title"])} API</title>
<link rel="stylesheet" href="/static/style.css">
<link rel="icon" href="/static/icon.svg" type="image/svg+xml">
</head>
<body class="reference">
<header class="top"><h1>{escape(info["title"])} <small>API {escape(info["version"])}</small></h1></header>
<main>
<p>{escape(info["description"])} <a href="/openapi.json">openapi.json</a></p>
<pre><code>{escape(_EXAMPLE.replace("<URL>", url))}</code></pre>
{"".join(operations)}
<h2>Schemas</h2>
{"".join(schemas)}
</main>
</body>
</html>
"""


_EXAMPLE = """TOKEN=$(kubectl create token NAME)
URL=<URL>
curl -H "Authorization: Bearer $TOKEN" $URL/api/v1/instances
curl -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\
  -d '{"name": "nacos", "version": "2.4.3", "spec": {"type": "cluster", "replicas": 3}}' \\
  $URL/api/v1/namespaces/default/instances
curl -N -H "Authorization: Bearer $TOKEN" $URL/api/v1/watch/instances"""


def _operation(method: str, path: str, operation: Schema) -> str:
    rows = [
        f"<tr><td><code>{escape(parameter['name'])}</code></td><td>{escape(parameter['in'])}</td>"
        f"<td>{escape(parameter.get('description', ''))}</td></tr>"
        for parameter in operation["parameters"]
    ]
    table = f"<table><tbody>{''.join(rows)}</tbody></table>" if rows else ""
    body = _named("Body", operation.get("requestBody"))
    answers = "".join(_named(status, answer) for status, answer in operation["responses"].items())
    return (
        f'<section id="{escape(operation["operationId"])}"><h2><span class="method">{method.upper()}</span> '
        f"<code>{escape(path)}</code></h2><p>{escape(operation['summary'])}</p>{table}<ul>{body}{answers}</ul></section>"
    )


def _named(label: str, part: Schema | None) -> str:
    if part is None:
        return ""
    kinds = [_link(media, content["schema"]) for media, content in part.get("content", {}).items()]
    text = ", ".join(kinds) or escape(part.get("description", ""))
    return f"<li>{escape(label)}: {text}</li>"


def _link(media: str, schema: Schema) -> str:
    name = schema.get("$ref", "").rpartition("/")[2]
    return f'<a href="#{escape(name)}">{escape(name)}</a> <small>{escape(media)}</small>' if name else escape(media)


def _schema(name: str, schema: Schema) -> str:
    about = escape(schema.get("description", ""))
    return f'<section id="{escape(name)}"><h3>{escape(name)}</h3><p>{about}</p>{_fields(schema, 0)}</section>'


def _fields(schema: Schema, depth: int) -> str:
    properties = schema.get("properties") or schema.get("items", {}).get("properties") or {}
    if not properties or depth > _DEEPEST:
        return ""
    needed = schema.get("required", [])
    return f"<ul>{''.join(_field(name, part, name in needed, depth) for name, part in properties.items())}</ul>"


def _field(name: str, schema: Schema, needed: bool, depth: int) -> str:
    facts = [_type(schema)]
    facts += ["required"] if needed else []
    if "enum" in schema:
        facts.append("one of " + ", ".join(repr(value) for value in schema["enum"]))
    if "default" in schema and not isinstance(schema["default"], dict):
        facts.append(f"default {schema['default']!r}")
    line = f"<code>{escape(name)}</code> <small>{escape('; '.join(facts))}</small>"
    inner = _fields(schema, depth + 1)
    return f"<li><details><summary>{line}</summary>{inner}</details></li>" if inner else f"<li>{line}</li>"


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    return str(schema.get("type") or ("integer or string" if "anyOf" in schema else "anything"))


_TYPES = {"css": "text/css; charset=utf-8", "svg": "image/svg+xml"}


@cache
def _table() -> dict[str, tuple[str, bytes, str]]:
    """Name -> media type, content, ETag. Read once: the files are part of the program."""
    table = {}
    for entry in files("konverge.service").joinpath("static").iterdir():
        media = _TYPES.get(entry.name.rpartition(".")[2])
        if media is not None:
            content = entry.read_bytes()
            table[entry.name] = (media, content, f'"{hashlib.sha256(content).hexdigest()[:16]}"')
    return table


def static(request: Request, name: str) -> Response | None:
    """The answer for a file; None for an unknown name. Browsers revalidate each time, and mostly get a 304."""
    entry = _table().get(name)
    if entry is None:
        return None
    media, content, tag = entry
    headers = Headers.of({"Content-Type": media, "ETag": tag, "Cache-Control": "no-cache"})
    if request.headers.get("if-none-match") == tag:
        return Response(304, headers)
    return Response(200, headers, content)
