"""Links in what comes back through a proxy: those to the server behind it have to lead through the proxy again.

Upstream: Transport (apimachinery/pkg/util/proxy/transport.go).
"""

from __future__ import annotations

import html
import posixpath
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import urlsplit, urlunsplit

_LINKS = {
    "a": ("href",),
    "applet": ("codebase",),
    "area": ("href",),
    "audio": ("src",),
    "base": ("href",),
    "blockquote": ("cite",),
    "body": ("background",),
    "button": ("formaction",),
    "command": ("icon",),
    "del": ("cite",),
    "embed": ("src",),
    "form": ("action",),
    "frame": ("longdesc", "src"),
    "head": ("profile",),
    "html": ("manifest",),
    "iframe": ("longdesc", "src"),
    "img": ("longdesc", "src", "usemap"),
    "input": ("src", "usemap", "formaction"),
    "ins": ("cite",),
    "link": ("href",),
    "object": ("classid", "codebase", "data", "usemap"),
    "q": ("cite",),
    "script": ("src",),
    "source": ("src",),
    "video": ("poster", "src"),
}
"""The attributes of each element that are addresses."""


@dataclass(frozen=True, slots=True)
class Links:
    """How addresses look from outside."""

    prefix: str
    """The path of the proxy itself."""
    host: str
    """As the client called the API server. Links that name it keep it; others name no host."""
    behind: str
    """Host and port of the server behind the proxy."""

    def outside(self, link: str) -> str:
        """A link as the client can follow it. Relative ones and those to other hosts stay as they are."""
        try:
            parts = urlsplit(link)
        except ValueError:
            return link
        if (parts.netloc and parts.netloc not in (self.behind, self.host)) or not parts.path.startswith("/"):
            return link
        path = parts.path
        if not path.startswith(self.prefix):
            path = posixpath.normpath(f"{self.prefix}/{path.lstrip('/')}") + ("/" if path.endswith("/") else "")
        scheme, host = (parts.scheme, parts.netloc) if parts.netloc == self.host else ("", "")
        return urlunsplit((scheme, host, path, parts.query, parts.fragment))

    def in_page(self, page: str) -> str:
        """A page of HTML with its links as the client can follow them."""
        rewriter = _Rewriter(self)
        rewriter.feed(page)
        return rewriter.finish(page)


class _Rewriter(HTMLParser):
    """Notes where start tags with such links are. All else stays as it is, byte by byte."""

    def __init__(self, links: Links) -> None:
        super().__init__(convert_charrefs=False)
        self._links = links
        self._tags: list[tuple[str, str]] = []
        """Start tags as they are, and as they should be; in the order of the page."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        wanted = _LINKS.get(tag, ())
        changed = [(name, self._links.outside(value) if value and name in wanted else value) for name, value in attrs]
        raw = self.get_starttag_text()
        if changed == attrs or raw is None:
            return
        fields = "".join(f" {name}" if value is None else f' {name}="{html.escape(value)}"' for name, value in changed)
        self._tags.append((raw, f"<{tag}{fields}{'/' if raw.endswith('/>') else ''}>"))

    def finish(self, page: str) -> str:
        written: list[str] = []
        for raw, tag in self._tags:
            before, _, page = page.partition(raw)
            written += (before, tag)
        return "".join(written) + page
