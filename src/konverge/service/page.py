"""The description of the API as a page for people, made from the OpenAPI document. No script, no foreign host."""

from __future__ import annotations

from html import escape
from typing import Any

Schema = dict[str, Any]

_DEEPEST = 6


def reference(document: Schema) -> str:
    """The whole page."""
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
<pre><code>{escape(_EXAMPLE)}</code></pre>
{"".join(operations)}
<h2>Schemas</h2>
{"".join(schemas)}
</main>
</body>
</html>
"""


_EXAMPLE = """TOKEN=$(kubectl create token NAME)
curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8082/api/v1/instances
curl -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\
  -d '{"name": "nacos", "version": "2.4.3", "spec": {"type": "cluster", "replicas": 3}}' \\
  http://127.0.0.1:8082/api/v1/namespaces/default/instances
curl -N -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8082/api/v1/watch/instances"""


def _operation(method: str, path: str, operation: Schema) -> str:
    rows = [
        f"<tr><td><code>{escape(one['name'])}</code></td><td>{escape(one['in'])}</td>"
        f"<td>{escape(one.get('description', ''))}</td></tr>"
        for one in operation["parameters"]
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
