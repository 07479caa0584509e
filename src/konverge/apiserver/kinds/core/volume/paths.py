"""Paths inside volumes and on hosts, as API values."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.framework.declare import Report


def no_backsteps(value: Any, path: str, report: Report) -> bool:
    """No `..` among the segments."""
    return ".." not in value.split("/") or report.invalid(path, value, "must not contain '..'")


def descending(value: Any, path: str, report: Report) -> bool:
    """Relative, and never upwards."""
    if value.startswith("/"):
        report.invalid(path, value, "must be a relative path")
    return no_backsteps(value, path, report)


def local_path(value: Any, path: str, report: Report) -> bool:
    """A path that a volume of files may have: descending, and not one of the names that the kubelet uses."""
    descending(value, path, report)
    reserved = value.startswith("..") and not value.startswith("../")
    return not reserved or report.invalid(path, value, "must not start with '..'")


def absolute(value: Any, path: str, report: Report) -> bool:
    return value.startswith("/") or report.invalid(path, value, "must be an absolute path")
