"""A custom kind for tests."""

from __future__ import annotations

from konverge import CustomResource, Model
from konverge.objects import NoStatus


class WidgetSpec(Model):
    size: int = 0


class Widget(CustomResource[WidgetSpec, NoStatus], group="tests.konverge.dev", version="v1"):
    """Nothing in particular."""
