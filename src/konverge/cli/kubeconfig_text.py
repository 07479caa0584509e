"""The text of a kubeconfig with a context put in or taken out; every other line stays as it was written.

People write comments into their kubeconfig and keep it in an order. Loading and dumping it would lose both, so the text
itself is edited, at the places where the parser says that the nodes are. What comes out is read again and compared with
what it must mean. Where the form does not allow such an edit (lists in braces), the file is written as a whole:
the same entries, without comments. A text that cannot be read is never edited.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import yaml

from konverge.go_yaml import is_text

SECTIONS = {"clusters": "cluster", "users": "user", "contexts": "context"}
CURRENT = "current-context"
MARK = "konverge.dev/cluster"
"""The name of the extension that our own entries have. An entry without it belongs to another, whatever its name."""
PREVIOUS, OURS = "previous", "ours"
"""In the extension of a context: which one was current before, as it was written, and whether that was one of ours."""

Document = dict[str, Any]


class NotEditable(ValueError):
    """The text is left alone; the message says why."""


def with_context(text: str, name: str, cluster: Document, user: Document, *, make_current: bool) -> str:
    """Put a cluster, a user and a context of this name in, in place of those of an earlier run."""
    text = without_context(text, name)
    document = _read(text)
    mark = _mark(document, name) if make_current else {}
    entries = {
        "clusters": _entry(name, "cluster", cluster, {}),
        "users": _entry(name, "user", user, {}),
        "contexts": _entry(name, "context", {"cluster": name, "user": name}, mark),
    }
    for section, entry in entries.items():
        if any(other.get("name") == name for other in document.get(section) or ()):
            raise NotEditable(f"it has an entry {name!r} in {section} that konverge did not write")
        text = _edited(text, _Append(section, entry))
    return _edited(text, _Current(name)) if make_current else text


def without_context(text: str, name: str) -> str:
    """Take out what `with_context` put in. If it was the current context, the one before it is current again, as it was
    written: its entry may be in another file of KUBECONFIG.
    """
    document = _read(text)
    ours = [entry for entry in document.get("contexts") or () if _is_ours(entry, "context", name)]
    text = _without(text, name)
    if not ours:
        return text
    mark = _mark_of(ours[0])
    text = _hand_down(text, name, mark)
    if document.get(CURRENT) != name:
        return text
    previous = mark.get(PREVIOUS, "")
    gone = mark.get(OURS) and not any(entry.get("name") == previous for entry in _read(text).get("contexts") or ())
    return _edited(text, _Current("" if gone else previous))


def current_context(text: str) -> str:
    """The current context; empty if there is none."""
    return str(_read(text).get(CURRENT) or "")


def _without(text: str, name: str) -> str:
    for section, kind in SECTIONS.items():
        entries = _read(text).get(section) or ()
        for index in reversed([index for index, entry in enumerate(entries) if _is_ours(entry, kind, name)]):
            text = _edited(text, _Remove(section, index))
    return text


def _mark(document: Document, name: str) -> Document:
    """What is to be current again after `name`."""
    previous = document.get(CURRENT)
    if not previous or previous == name:
        return {}
    ours = any(_is_ours(entry, "context", previous) for entry in document.get("contexts") or ())
    return {PREVIOUS: previous, OURS: True} if ours else {PREVIOUS: previous}


def _hand_down(text: str, name: str, mark: Document) -> str:
    """Contexts of ours that `name` was before go back to what was before `name`."""
    if mark.get(PREVIOUS) == name:
        mark = {}
    while after := [
        (index, entry)
        for index, entry in enumerate(_read(text).get("contexts") or ())
        if _is_ours(entry, "context", entry.get("name")) and _mark_of(entry).get(PREVIOUS) == name
    ]:
        index, entry = after[0]
        changed = copy.deepcopy(entry)
        for extension in _marks(changed, "context"):
            extension["extension"] = mark
        text = _edited(_edited(text, _Remove("contexts", index)), _Append("contexts", changed))
    return text


def _entry(name: str, kind: str, content: Document, mark: Document) -> Document:
    return {"name": name, kind: {**content, "extensions": [{"name": MARK, "extension": mark}]}}


def _is_ours(entry: Document, kind: str, name: object) -> bool:
    return entry.get("name") == name and bool(_marks(entry, kind))


def _mark_of(context: Document) -> Document:
    mark = _marks(context, "context")[0].get("extension")
    return mark if isinstance(mark, dict) else {}


def _marks(entry: Document, kind: str) -> list[Document]:
    content = entry.get(kind)
    extensions = content.get("extensions") if isinstance(content, dict) else None
    if not isinstance(extensions, list):
        return []
    return [extension for extension in extensions if isinstance(extension, dict) and extension.get("name") == MARK]


def _read(text: str) -> Document:
    """What the text means. Raises NotEditable."""
    try:
        documents = list(yaml.safe_load_all(text))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise NotEditable(f"it is not YAML: {' '.join(str(error).split())}") from error
    if len(documents) > 1:
        raise NotEditable("it has several documents")
    document = documents[0] if documents and documents[0] is not None else {}
    if not isinstance(document, dict):
        raise NotEditable("its top level is not a mapping")
    for section in SECTIONS:
        entries = document.get(section)
        if entries is not None and not (isinstance(entries, list) and all(isinstance(e, dict) for e in entries)):
            raise NotEditable(f"its {section} are not a list of entries")
    return document


# ---------------------------------------------------------------- one edit, of the meaning and of the text


class _Append:
    def __init__(self, section: str, entry: Document) -> None:
        self.section, self.entry = section, entry

    def meaning(self, document: Document) -> None:
        document[self.section] = [*(document.get(self.section) or ()), self.entry]

    def text(self, text: str, root: yaml.MappingNode | None) -> str:
        block = yaml.safe_dump([self.entry], sort_keys=False, width=1 << 30, allow_unicode=True)
        value = _value(root, self.section)
        if value is None:
            return _at_the_end(text, f"{self.section}:\n{block}")
        if isinstance(value, yaml.SequenceNode) and value.value and not value.flow_style:
            place = _line_after(text, value)
            return _joined(text[:place], _indented(block, value.start_mark.column), text[place:])
        start, end = value.start_mark.index, value.end_mark.index
        return text[:start] + "\n" + block.rstrip("\n") + text[end:]


class _Remove:
    def __init__(self, section: str, index: int) -> None:
        self.section, self.index = section, index

    def meaning(self, document: Document) -> None:
        del document[self.section][self.index]

    def text(self, text: str, root: yaml.MappingNode | None) -> str:
        sequence = _value(root, self.section)
        assert isinstance(sequence, yaml.SequenceNode)
        entry = sequence.value[self.index]
        start = text.rfind("\n", 0, entry.start_mark.index) + 1
        return text[:start] + text[_line_after(text, entry) :]


class _Current:
    def __init__(self, name: Any) -> None:
        self.name = name  # not always a text: others write numbers without quotes

    def meaning(self, document: Document) -> None:
        document[CURRENT] = self.name

    def text(self, text: str, root: yaml.MappingNode | None) -> str:
        value = _value(root, CURRENT)
        written = _scalar(self.name)
        if value is None:
            return _at_the_end(text, f"{CURRENT}: {written}\n")
        start, end = value.start_mark.index, value.end_mark.index
        space = "" if text[:start].endswith((" ", "\n")) else " "
        return text[:start] + space + written + text[end:]


def _edited(text: str, edit: _Append | _Remove | _Current) -> str:
    """The text after an edit: in place if that means what it should, else written as a whole."""
    document = _read(text)
    desired = copy.deepcopy(document)
    edit.meaning(desired)
    line_end = "\r\n" if "\r\n" in text else "\n"
    plain = text.replace("\r\n", "\n")
    for way in (lambda: edit.text(plain, _root(plain)), lambda: _whole(plain, edit, desired)):
        result = _try(way)
        if result is not None and _means(result, desired):
            return result.replace("\n", line_end)
    raise NotEditable("its form is not one that can be edited")


def _try(way: Callable[[], str]) -> str | None:
    try:
        return way()
    except (yaml.YAMLError, AssertionError, IndexError):
        return None


def _means(text: str, desired: Document) -> bool:
    try:
        document = _read(text)
    except NotEditable:
        return False
    empty = {key: value for key, value in desired.items() if value or key not in SECTIONS}
    return {key: value for key, value in document.items() if value or key not in SECTIONS} == empty


def _whole(text: str, edit: _Append | _Remove | _Current, desired: Document) -> str:
    """Without comments. JSON stays JSON; in YAML, scalars stay as they are written, also those that look like times."""
    if text.lstrip().startswith("{"):
        try:
            json.loads(text)
        except ValueError:
            pass
        else:
            return json.dumps(desired, indent=2, ensure_ascii=False) + "\n"
    root = _root(text)
    assert root is not None
    key = CURRENT if isinstance(edit, _Current) else edit.section
    kept = [(name, value) for name, value in root.value if name.value != key]
    value = _value(root, key)
    items = list(value.value) if isinstance(value, yaml.SequenceNode) else []
    if isinstance(edit, _Remove):
        del items[edit.index]
    elif isinstance(edit, _Append):
        items.append(yaml.compose(yaml.safe_dump(edit.entry, sort_keys=False)))
    node: yaml.Node = yaml.SequenceNode("tag:yaml.org,2002:seq", items)
    if isinstance(edit, _Current):
        node = yaml.compose(_scalar(edit.name), Loader=yaml.SafeLoader)
    root.value = [*kept, (yaml.ScalarNode("tag:yaml.org,2002:str", key), node)]
    return str(yaml.serialize(root, width=1 << 30, allow_unicode=True))


def _scalar(value: Any) -> str:
    """As it is written after a key: with quotes if it would be read as something else without them."""
    if not isinstance(value, str):
        return yaml.safe_dump(value).removesuffix("...\n").strip()
    try:
        if is_text(value) and yaml.safe_load(f"key: {value}\n") == {"key": value}:
            return value
    except (yaml.YAMLError, ValueError):
        pass
    return yaml.safe_dump(value, default_style='"', width=1 << 30, allow_unicode=True).strip()


def _root(text: str) -> yaml.MappingNode | None:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    return root if isinstance(root, yaml.MappingNode) else None


def _value(root: yaml.MappingNode | None, key: str) -> yaml.Node | None:
    values = [value for name, value in (root.value if root is not None else ()) if name.value == key]
    return values[-1] if values else None


def _line_after(text: str, node: yaml.Node) -> int:
    """Where the line after a node begins. The parser itself counts comments that follow a list as part of it."""
    last = node
    while isinstance(last, yaml.MappingNode | yaml.SequenceNode) and last.value and not last.flow_style:
        last = last.value[-1][1] if isinstance(last, yaml.MappingNode) else last.value[-1]
    end: int = last.end_mark.index
    if end and text[end - 1] == "\n":
        return end
    line_end = text.find("\n", end)
    return len(text) if line_end < 0 else line_end + 1


def _joined(before: str, block: str, after: str) -> str:
    return before + ("" if not before or before.endswith("\n") else "\n") + block + after


def _at_the_end(text: str, block: str) -> str:
    return _joined(text, block, "")


def _indented(block: str, column: int) -> str:
    return "".join(" " * column + line for line in block.splitlines(keepends=True))
