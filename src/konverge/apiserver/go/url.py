"""Go's net/url: URLs, and what is wrong with a text that is none."""

from __future__ import annotations

import re
from urllib.parse import unquote

import msgspec
from msgspec.structs import replace

from konverge.apiserver.go import netip
from konverge.apiserver.go.strconv import quote

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_PORT = re.compile(r":[0-9]*").fullmatch
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*").fullmatch
_HOST_PART = re.compile(r"%.?.?|.", re.DOTALL)
_HOST_OK = re.compile(r"[^\x00-\x20#%/?@\\^`{|}\x7f]").fullmatch  # what is allowed takes 30 ms to compile
_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


class Url(msgspec.Struct, frozen=True):
    text: str
    scheme: str = ""
    host: str = ""
    path: str = ""
    query: str = ""
    user: str | None = None
    fragment: str = ""

    @property
    def hostname(self) -> str:
        if self.host.startswith("["):
            return self.host[1 : self.host.index("]")]
        return self.host.partition(":")[0]

    @property
    def port(self) -> str:
        tail = self.host.rpartition("]")[2]
        return tail.partition(":")[2] if ":" in tail else ""

    def parameters(self) -> dict[str, list[str]]:
        parameters: dict[str, list[str]] = {}
        for part in self.query.split("&"):
            if not part or ";" in part:
                continue
            key, _, value = part.partition("=")
            if not (_ESCAPE.search(key) or _ESCAPE.search(value)):
                parameters.setdefault(_plus(key), []).append(_plus(value))
        return parameters


def _plus(text: str) -> str:
    return unquote(text.replace("+", " "))


class UrlError(ValueError):
    """The message is Go's."""


def parse_url(text: str) -> Url:  # upstream: url.ParseRequestURI
    try:
        return _parse(text, via_request=True)
    except UrlError as error:
        raise UrlError(f"parse {quote(text)}: {error}") from None


def parse_reference(text: str) -> Url:
    """A URL that may be relative, and may have a fragment. Upstream: url.Parse."""
    head, _, fragment = text.partition("#")
    try:
        url = _parse(head, via_request=False)
    except UrlError as error:
        raise UrlError(f"parse {quote(head)}: {error}") from None
    try:
        _check_escapes(fragment)
    except UrlError as error:
        raise UrlError(f"parse {quote(text)}: {error}") from None
    return replace(url, text=text, fragment=unquote(fragment))


def _parse(text: str, *, via_request: bool) -> Url:
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in text):
        raise UrlError("net/url: invalid control character in URL")
    if not text and via_request:
        raise UrlError("empty url")
    if text == "*":
        return Url(text, path="*")
    scheme, rest = _split_scheme(text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(text, scheme, query=query)
        if via_request:
            raise UrlError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise UrlError("first path segment in URL cannot contain colon")
    host, user = "", None
    if rest.startswith("//") and (scheme or not (via_request or rest.startswith("///"))):
        authority, slash, tail = rest[2:].partition("/")
        (host, user), rest = _authority(scheme, authority), slash + tail
    _check_escapes(rest)
    return Url(text, scheme, host, rest, query, user)


def _split_scheme(text: str) -> tuple[str, str]:  # upstream: getScheme
    if text.startswith(":"):
        raise UrlError("missing protocol scheme")
    match = _SCHEME.match(text)
    if match is not None and text[match.end() : match.end() + 1] == ":":
        return match[0].lower(), text[match.end() + 1 :]
    return "", text


def _check_escapes(text: str) -> None:
    bad = _ESCAPE.search(text)
    if bad is not None:
        raise UrlError(f"invalid URL escape {quote(text[bad.start() : bad.start() + 3])}")


def _authority(scheme: str, text: str) -> tuple[str, str | None]:
    """Host, and user if there is one. Upstream: parseAuthority."""
    user, at, host = text.rpartition("@")
    host = _host(scheme, host)
    if at and not _USER(user):
        raise UrlError("net/url: invalid userinfo")
    _check_escapes(user)
    return host, user if at else None


def _host(scheme: str, host: str) -> str:  # upstream: parseHost
    if host.rfind("[") > 0:
        raise UrlError("invalid IP-literal")
    if host.startswith("["):
        return _ip_literal(host)
    several = host.count(":") > 1 and scheme not in ("http", "https")
    first = host.rfind(":") if several else host.find(":")
    if first >= 0:
        _check_port(host[first:])
    return _unescape_host(host)


def _ip_literal(host: str) -> str:
    end = host.rfind("]")
    if end < 0:
        raise UrlError("missing ']' in host")
    _check_port(host[end + 1 :])
    name, percent, zone = host[1:end].partition("%25")
    _check_escapes(zone)
    address = _unescape_host(name) + ("%" + unquote(zone) if percent else "")
    reason = netip.address_error(address)
    if reason:
        raise UrlError(f"invalid host: {reason}")
    if ":" not in address:
        raise UrlError("invalid IP-literal")
    return f"[{address}]{host[end + 1 :]}"


def _check_port(port: str) -> None:
    if port and not _PORT(port):
        raise UrlError(f"invalid port {quote(port)} after host")


def _unescape_host(host: str) -> str:
    """Only bytes that are not ASCII, and the percent sign, may be escaped in a host. Upstream: unescape."""
    for match in _HOST_PART.finditer(host):
        part = match[0]
        if part[0] == "%":
            _check_escapes(host[match.start() :][:3])
            if part[1] in "01234567" and part != "%25":
                raise UrlError(f"invalid URL escape {quote(part)}")
        elif not _HOST_OK(part):
            raise UrlError(f"invalid character {quote(part)} in host name")
    return unquote(host)
