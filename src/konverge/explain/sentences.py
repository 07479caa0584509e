"""`Sentence`: an English text that remembers what it was built from, so that it can be said in another language. Pure.

The template is the id of a message, as in gettext, and its values are its arguments; a value may be a sentence itself.
The text is a str like any other: programs and the command line need not know more. The console sends `parts`, and its
pages look the templates up in `console/src/texts/sentences.zh.json`, where a test wants every template of this program.
What others wrote (messages, names, terms of selectors) is a value, never a part of a template: it stays as it is.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Value: TypeAlias = str | int


class Sentence(str):
    """A text with its template and values: `say` makes it."""

    __slots__ = ("template", "values")
    template: str
    values: dict[str, Value]


def say(template: str, /, **values: Value) -> Sentence:
    """A sentence. `template` has to be a literal: the test that every template has a translation reads the source.

    >>> sentence = say("has {ready} of {wanted} pods ready", ready=1, wanted=3)
    >>> sentence, sentence.template
    ('has 1 of 3 pods ready', 'has {ready} of {wanted} pods ready')
    """
    sentence = Sentence(template.format_map(values))
    sentence.template, sentence.values = template, values
    return sentence


NOTHING = say("")


class Several(str):
    """Texts beside each other: `several` makes it."""

    __slots__ = ("texts",)
    texts: list[str]


def several(texts: list[str]) -> Several:
    """
    >>> several(["1 has been cordoned", "2 have not enough cpu"])
    '1 has been cordoned, 2 have not enough cpu'
    """
    whole = Several(", ".join(texts))
    whole.texts = texts
    return whole


def explained(head: Sentence, detail: str) -> Sentence:
    """A sentence with what another object or controller says about it, if there is something.

    >>> explained(say("is not ready"), "no route to host"), explained(say("is not ready"), "")
    ('is not ready: no route to host', 'is not ready')
    """
    return say("{head}: {detail}", head=head, detail=detail) if detail else head


def parts(text: Value) -> dict[str, Any] | list[Any] | str | int:
    """A sentence as plain data: `{"say": template, "with": values}`. A text without a template is itself.

    >>> parts(explained(say("is not ready"), "no route to host"))
    {'say': '{head}: {detail}', 'with': {'head': {'say': 'is not ready', 'with': {}}, 'detail': 'no route to host'}}
    """
    if isinstance(text, Sentence):
        return {"say": text.template, "with": {name: parts(value) for name, value in text.values.items()}}
    return [parts(entry) for entry in text.texts] if isinstance(text, Several) else text
