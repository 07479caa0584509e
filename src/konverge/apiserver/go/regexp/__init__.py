"""Go's regular expressions: its syntax, its error messages, and matching in linear time.

Why these are not Python's `re` or google-re2: docs/adr/0005-regular-expressions.md.
"""

from konverge.apiserver.go.regexp.pattern import Pattern, compile_pattern
from konverge.apiserver.go.regexp.syntax import RegexError

__all__ = ["Pattern", "RegexError", "compile_pattern"]
