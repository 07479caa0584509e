"""Operators' own pages: what is worth showing of a kind, declared in a few lines and drawn by the console.

    from konverge.console import Card, Column, Page

    PAGE = Page(
        name="backups",
        title="Backups",
        kind="Backup",
        api_version="example.com/v1",
        resource="backups",
        columns=[Column("Taken", "status.takenAt", "time")],
        cards=[Card("Conditions", "status.conditions", type="conditions")],
    )

Paths are those of fields, with dots (`status.takenAt`); `[*]` is every item of a list. A page holds data only, so
a declaration can neither run code in a browser nor do more than the reader may do.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from konverge.objects import Object

ColumnType = Literal["text", "number", "time", "bool", "quantity", "health", "link"]
CardType = Literal["value", "table", "record", "conditions", "links"]


class Column(msgspec.Struct, frozen=True, rename="camel"):
    """A column of a list: a title, and where its value is in the object (or in the item of a table)."""

    title: str
    path: str
    type: ColumnType = "text"


class Card(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A part of an object's page."""

    title: str
    path: str
    type: CardType = "value"
    columns: list[Column] = []
    """Of a table: its columns, by paths inside each item. Of a record: the fields that are shown, if they are there."""
    empty: str = ""
    """What a table or a record says when there is nothing in it."""


class Action(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What can be done with an object, by a patch of it or on another page."""

    name: str
    title: str
    patch: dict[str, Any] = {}
    """A merge patch; in it, `{"$form": "replicas"}` stands for what was entered into that field of the form, and
    `{"$now": true}` for the time."""
    subresource: str = ""
    """The subresource that the patch is for."""
    href: str = ""
    """Another page, in place of a patch: a path of the console."""
    confirm: str = ""
    """What has to be confirmed first."""
    form: list[Input] = []


class Input(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A field of a form."""

    name: str
    title: str
    type: Literal["text", "number", "bool", "select", "quantity"] = "text"
    values: list[str] = []
    """Of a `select`: what can be chosen."""
    path: str = ""
    """Where its present value is in the object."""
    required: bool = False


class Version(msgspec.Struct, frozen=True):
    """A version that a form offers, and the image that it stands for."""

    version: str
    image: str
    default: bool = False


class Form(msgspec.Struct, frozen=True, rename="camel"):
    """A form of the console for new objects of a kind; without one, they are created as YAML, from the sample."""

    form: str
    """Its name, which the front end knows: `nacos`."""
    versions: list[Version] = []


class Page(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The page of a kind."""

    name: str
    title: str
    kind: str
    api_version: str
    resource: str
    columns: list[Column] = []
    cards: list[Card] = []
    actions: list[Action] = []
    sample: dict[str, Any] | None = None
    """What a form to create one begins with."""
    create: Form | None = None
    chinese: dict[str, str] = {}
    """Titles, confirmations and what cards say when they are empty, in Chinese by the English texts; what is not here
    stays as it is."""

    @classmethod
    def of(
        cls,
        kind: type[Object],
        *,
        title: str,
        columns: list[Column],
        cards: list[Card],
        actions: list[Action],
        sample: dict[str, Any] | None = None,
        create: Form | None = None,
        chinese: dict[str, str] | None = None,
    ) -> Page:
        """The page of a class of objects, which says where they are served."""
        resource = kind.resource
        return cls(
            name=resource.plural,
            title=title,
            kind=resource.kind,
            api_version=resource.api_version,
            resource=resource.plural,
            columns=columns,
            cards=cards,
            actions=actions,
            sample=sample,
            create=create,
            chinese=chinese or {},
        )
