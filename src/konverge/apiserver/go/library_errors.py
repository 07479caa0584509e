"""What Go's standard library says about broken input, where the API passes it on."""

from __future__ import annotations

import json
import re
from collections.abc import Collection

from konverge.apiserver.field_errors import quote

_PEM = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----\s.*?-----END \1-----", re.DOTALL)

_EXPECTED = {
    "Expecting value": "looking for beginning of value",
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Illegal trailing comma before end of object": "looking for beginning of object key string",
    "Illegal trailing comma before end of array": "looking for beginning of value",
    "Expecting ':' delimiter": "after object key",
    "Extra data": "after top-level value",
}


def json_syntax_error(content: bytes) -> str:
    """The scanner's message about text that is not JSON; it looks at bytes, not at characters."""
    text = content.decode("latin-1")
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
            return "unexpected end of JSON input"
        inside = "after array element" if text.rfind("[", 0, error.pos) > text.rfind("{", 0, error.pos) else ""
        expected = _EXPECTED.get(error.msg, inside or "after object key:value pair")
        letter = text[error.pos]
        shown = "'\\''" if letter == "'" else f"'{quote(letter)[1:-1]}'" if letter != '"' else "'\"'"
        return f"invalid character {shown} {expected}"
    return ""


_TYPES = {str: "string", list: "array", bool: "bool", dict: "object"}


def json_type_error(content: bytes, wanted: type, go_type: str) -> str:
    """Why Go cannot read JSON text into a value of a type, or ""; null is always fine."""
    try:
        found = json.loads(content)
    except ValueError:
        return json_syntax_error(content)
    if found is None or isinstance(found, wanted):
        return ""
    return f"json: cannot unmarshal {_TYPES.get(type(found), 'number')} into Go value of type {go_type}"


def json_objects_error(content: bytes, element: str, texts: Collection[str]) -> str:
    """Why Go cannot read JSON text into a list of structs with these fields of text, or ""."""
    problem = json_type_error(content, list, f"[]{element}")
    if problem:
        return problem
    for item in json.loads(content) or ():
        if not isinstance(item, dict):
            return f"json: cannot unmarshal {_TYPES.get(type(item), 'number')} into Go value of type {element}"
        for name in texts:
            value = item.get(name)
            if value is not None and not isinstance(value, str):
                place = f"{element.rpartition('.')[2]}.{name[0].upper()}{name[1:]}"
                kind = _TYPES.get(type(value), "number")
                return f"json: cannot unmarshal {kind} into Go struct field {place} of type string"
    return ""


def key_pair_error(certificate: bytes, key: bytes) -> str:
    """Why crypto/tls cannot use a certificate and its key, or "" as far as their PEM blocks tell."""
    blocks = [match[1].decode() for match in _PEM.finditer(certificate)]
    if not any(block == "CERTIFICATE" for block in blocks):
        return _no_certificate(blocks)
    found = [match[1].decode() for match in _PEM.finditer(key)]
    if any(block == "PRIVATE KEY" or block.endswith(" PRIVATE KEY") for block in found):
        return ""
    return _no_key(found)


def _no_certificate(blocks: list[str]) -> str:
    if not blocks:
        return "tls: failed to find any PEM data in certificate input"
    if len(blocks) == 1 and blocks[0].endswith("PRIVATE KEY"):
        return (
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; "
            "PEM inputs may have been switched"
        )
    listed = " ".join(blocks)
    return (
        'tls: failed to find "CERTIFICATE" PEM block in certificate input '
        f"after skipping PEM blocks of the following types: [{listed}]"
    )


def _no_key(blocks: list[str]) -> str:
    if not blocks:
        return "tls: failed to find any PEM data in key input"
    if len(blocks) == 1 and blocks[0] == "CERTIFICATE":
        return "tls: found a certificate rather than a key in the PEM for the private key"
    listed = " ".join(blocks)
    return (
        'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input '
        f"after skipping PEM blocks of the following types: [{listed}]"
    )
