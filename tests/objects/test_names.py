"""The formats of names, with the messages of the API."""

from __future__ import annotations

import pytest

from konverge.objects import names


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("a-1", []),
        ("a.b", ["must not contain dots"]),
        ("A", ["a lowercase RFC 1123 label must consist of"]),
        ("a" * 64, ["must be no more than 63 characters"]),
        ("-" * 64, ["must be no more than 63 characters", "a lowercase RFC 1123 label"]),
    ],
)
def test_dns_labels_report_what_is_wrong(text: str, starts: list[str]) -> None:
    errors = names.dns_label_errors(text)
    assert len(errors) == len(starts)
    assert all(error.startswith(start) for error, start in zip(errors, starts, strict=True))


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("a", []),
        ("example.com/Name_1", []),
        ("/a", ["prefix part must be non-empty"]),
        ("a/", ["name part must be non-empty", "name part must consist of"]),
        ("a/b/c", ["a valid label key must consist of"]),
        ("A_/b", ["prefix part a lowercase RFC 1123 subdomain"]),
        ("x" * 64, ["name part must be no more than 63 bytes"]),
    ],
)
def test_qualified_names_report_the_part_that_is_wrong(text: str, starts: list[str]) -> None:
    errors = names.qualified_name_errors(text)
    assert len(errors) == len(starts)
    assert all(error.startswith(start) for error, start in zip(errors, starts, strict=True))


def test_examples_are_listed_with_the_two_spaces_of_the_api() -> None:
    assert "(e.g. 'my-name',  or '123-abc', regex used" in names.dns_label_errors("_")[0]


def test_port_names_report_every_error() -> None:
    assert names.port_name_errors("--") == [
        "must contain at least one letter (a-z)",
        "must not contain consecutive hyphens",
        "must not begin or end with a hyphen",
    ]


def test_lengths_are_counted_in_bytes_where_upstream_declares_a_format_by_tags() -> None:
    assert names.counted_in_bytes(names.dns_label_errors)("a" * 64) == ["must be no more than 63 bytes"]
    assert names.label_value_errors("a" * 64) == ("must be no more than 63 bytes",)
