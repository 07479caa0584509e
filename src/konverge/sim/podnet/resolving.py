"""What the containers of a pod find in /etc/resolv.conf, by its `dnsPolicy` and `dnsConfig`.

Upstream: pkg/kubelet/network/dns/dns.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from konverge.objects.kinds.core_v1 import Pod, PodDNSConfig
from konverge.sim.applications.names.zone import search_domains

_MOST_SERVERS, _MOST_DOMAINS = 3, 32


@dataclass(slots=True)
class Settings:
    """The lines of a resolv.conf."""

    servers: list[str] = field(default_factory=list)
    domains: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Settings:
        found = cls()
        for line in text.splitlines():
            match line.split():
                case ["nameserver", address, *_]:
                    found.servers.append(address)
                case ["search", *domains]:
                    found.domains = [domain for domain in domains if domain != "."]
                case ["options", *options]:
                    found.options |= dict(option.partition(":")[::2] for option in options)
        return found

    def add(self, config: PodDNSConfig) -> None:
        """What a pod says itself comes last, and its options win."""
        self.servers = _once((*self.servers, *config.nameservers))
        self.domains = _once((*self.domains, *config.searches))
        self.options |= {option.name: option.value or "" for option in config.options if option.name}

    def __str__(self) -> str:
        lines = [f"nameserver {address}" for address in self.servers[:_MOST_SERVERS]]
        if self.domains:
            lines.append(f"search {' '.join(self.domains[:_MOST_DOMAINS])}")
        if self.options:
            options = (f"{name}:{value}" if value else name for name, value in self.options.items())
            lines.append(f"options {' '.join(options)}")
        return "".join(f"{line}\n" for line in lines)


def resolv_conf(pod: Pod, server: str, machine: str) -> str:
    """For a pod with a network of its own. `server` answers for the cluster, `machine` is this machine's own file."""
    policy = pod.spec.dns_policy or "ClusterFirst"
    if policy == "None":
        settings = Settings()
    elif policy == "Default":
        settings = Settings.parse(machine)
    else:
        domains = [*search_domains(pod.metadata.namespace), *Settings.parse(machine).domains]
        settings = Settings([server], _once(domains), {"ndots": "5"})
    if pod.spec.dns_config is not None:
        settings.add(pod.spec.dns_config)
    return str(settings)


def _once(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
