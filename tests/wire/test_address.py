"""Base URLs."""

from __future__ import annotations

import pytest

from konverge.wire.address import Address


@pytest.mark.parametrize(
    ("url", "host", "authority", "known_as"),
    [
        ("https://Example.COM", "example.com", "example.com", "example.com:443"),
        ("https://h:443/x/", "h", "h", "h:443"),
        ("http://h:443", "h", "h:443", "h:443"),
        ("https://[FD00::1]:6443", "fd00::1", "[fd00::1]:6443", "[fd00::1]:6443"),
        ("http://[fe80::1%25eth0]", "fe80::1%eth0", "[fe80::1]", "[fe80::1]:80"),
        ("https://bücher.example:1", "xn--bcher-kva.example", "xn--bcher-kva.example:1", "xn--bcher-kva.example:1"),
    ],
)
def test_hosts(url: str, host: str, authority: str, known_as: str) -> None:
    address = Address.parse(url)
    assert (address.host, address.authority, address.host_and_port) == (host, authority, known_as)


@pytest.mark.parametrize(
    "url", ["http://a b", "http://h:port", "http://h:70000", "http://" + 70 * "ü", "http://a%0d%0ab"]
)
def test_hosts_that_are_none(url: str) -> None:
    with pytest.raises(ValueError, match=r"host in this URL|port in this URL"):
        Address.parse(url)
