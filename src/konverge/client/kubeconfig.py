"""Kubeconfig files: reading, merging, and turning a context into a `Config`.

Several files merge by kubectl's rule (upstream: `ClientConfigLoadingRules.Load`, client-go/tools/clientcmd): the first
file that names a cluster, user or context wins with the whole entry, and the first that sets `current-context` wins.
Relative paths are relative to the file that they stand in. YAML means what it means to kubectl. Every error names the
file, the entry and the key, because a kubeconfig is edited by hand.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from konverge.client.config import Config, Impersonation, TlsSettings
from konverge.client.credentials import ANONYMOUS, Credentials, Static, TokenFile, sendable
from konverge.client.errors import ConfigError
from konverge.client.exec_plugin import VERSIONS, ExecPlugin, ExecSpec
from konverge.wire.proxy import Proxy

MAX_BYTES = 16 << 20
EXEC_EXTENSION = "client.authentication.k8s.io/exec"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Section:
    """One named entry, with the file it came from: typed access to its keys, with errors that say where."""

    label: str
    file: str
    values: Mapping[str, Any]

    @property
    def source(self) -> str:
        return f"{self.label} in {self.file}"

    def text(self, key: str) -> str:
        return self._typed(key, str, "")

    def flag(self, key: str) -> bool:
        return self._typed(key, bool, False)

    def items(self, key: str) -> list[Any]:
        return self._typed(key, list, [])

    def mapping(self, key: str) -> Mapping[str, Any]:
        return self._typed(key, dict, {})

    def path(self, key: str) -> str:
        """A file name, relative to the kubeconfig that names it."""
        value = self.text(key)
        return str(Path(self.file).parent / Path(value).expanduser()) if value else ""

    def data(self, key: str) -> str:
        """Base64 in the file, PEM text outside."""
        value = self.text(key)
        try:
            return base64.b64decode("".join(value.split()), validate=True).decode()
        except ValueError as error:
            raise self.bad(key, "is not base64 of PEM text") from error

    def bad(self, key: str, what: str) -> ConfigError:
        return ConfigError(f"{self.source}: {key} {what}")

    def _typed(self, key: str, kind: type[T], default: T) -> T:
        value = self.values.get(key)
        if value is None:
            return default
        if not isinstance(value, kind):
            raise self.bad(key, f"must be a {kind.__name__}, not {type(value).__name__}")
        return value


@dataclass(slots=True)
class Kubeconfig:
    """One or several kubeconfig files, merged.

    config = Kubeconfig.read_list("~/.kube/config:~/.kube/staging").config("staging")
    """

    clusters: dict[str, Section] = field(default_factory=dict)
    users: dict[str, Section] = field(default_factory=dict)
    contexts: dict[str, Section] = field(default_factory=dict)
    current_context: str = ""
    files: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, path: str | Path) -> Kubeconfig:
        """One file, which must exist."""
        file = Path(path).expanduser()
        if not file.exists():
            raise ConfigError(f"the kubeconfig {file} does not exist")
        return cls.parse(_load_yaml(file), str(file))

    @classmethod
    def read_list(cls, listed: str) -> Kubeconfig:
        """$KUBECONFIG: paths with the system's separator between them; those that do not exist are skipped."""
        paths = [Path(part).expanduser() for part in listed.split(os.pathsep) if part]
        configs = [cls.read(path) for path in paths if path.exists()]
        if not configs:
            raise ConfigError(f"none of the files in KUBECONFIG exists: {listed}")
        return cls.merged(configs)

    @classmethod
    def parse(cls, document: Any, file: str) -> Kubeconfig:
        if not isinstance(document, dict):
            raise ConfigError(f"{file}: not a kubeconfig: the top level must be a mapping")
        root = Section("kubeconfig", file, document)
        return cls(
            clusters=_entries(root, "clusters", "cluster"),
            users=_entries(root, "users", "user"),
            contexts=_entries(root, "contexts", "context"),
            current_context=root.text("current-context"),
            files=[file],
        )

    @classmethod
    def merged(cls, configs: Iterable[Kubeconfig]) -> Kubeconfig:
        """The first to name a thing wins, with the whole thing."""
        result = cls()
        for config in configs:
            result.clusters = {**config.clusters, **result.clusters}
            result.users = {**config.users, **result.users}
            result.contexts = {**config.contexts, **result.contexts}
            result.current_context = result.current_context or config.current_context
            result.files += config.files
        return result

    def config(self, context: str | None = None) -> Config:
        """The `Config` of a context; of the current one unless named."""
        chosen = self._context(context)
        cluster = self._referred(self.clusters, chosen, "cluster", needed=True)
        user = self._referred(self.users, chosen, "user", needed=False)
        server = cluster.text("server")
        if not server:
            raise cluster.bad("server", "is missing")
        tls = _tls(cluster, user)
        return Config(
            server=server.rstrip("/"),
            credentials=_credentials(user, cluster),
            tls=tls,
            namespace=chosen.text("namespace") or "default",
            proxy=_proxy(cluster),
            impersonate=_impersonation(user),
            compression=not cluster.flag("disable-compression"),
            source=chosen.source,
        )

    def _context(self, name: str | None) -> Section:
        name = name or self.current_context
        known = ", ".join(sorted(self.contexts)) or "none"
        files = ", ".join(self.files)
        if not name:
            raise ConfigError(
                f"no current-context in {files}: name one (contexts: {known}), or set it with "
                "`kubectl config use-context NAME`"
            )
        if name not in self.contexts:
            raise ConfigError(f"there is no context {name!r} in {files} (contexts: {known})")
        return self.contexts[name]

    def _referred(self, among: dict[str, Section], context: Section, key: str, *, needed: bool) -> Section:
        name = context.text(key)
        if not name and not needed:
            return Section(key, context.file, {})
        if name not in among:
            known = ", ".join(sorted(among)) or "none"
            raise context.bad(key, f"names {name!r}, which none of {', '.join(self.files)} defines (defined: {known})")
        return among[name]


def _load_yaml(file: Path) -> Any:
    # PyYAML costs 15 ms to import, and a program in a pod never needs it.
    import yaml

    from konverge.go_yaml import Loader

    try:
        if file.stat().st_size > MAX_BYTES:
            raise ConfigError(f"{file} is larger than {MAX_BYTES} bytes: not a kubeconfig")
        return yaml.load(file.read_bytes(), Loader) or {}  # noqa: S506 - a safe loader
    except OSError as error:
        raise ConfigError(f"cannot read the kubeconfig {file}: {error.strerror}") from error
    except (yaml.YAMLError, RecursionError, ValueError, LookupError, AttributeError) as error:
        # PyYAML lets through what Python says of a value that its tag does not allow, such as `!!bool x`.
        raise ConfigError(f"{file} is not YAML: {error}") from error


def _entries(root: Section, plural: str, singular: str) -> dict[str, Section]:
    entries: dict[str, Section] = {}
    for index, entry in enumerate(root.items(plural)):
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not name:
            raise root.bad(f"{plural}[{index}]", "needs a name")
        if name in entries:
            raise root.bad(f"{plural}[{index}]", f"repeats the name {name!r}")
        entries[name] = Section(
            f"{singular} {name!r}", root.file, Section(f"{singular} {name!r}", root.file, entry).mapping(singular)
        )
    return entries


def _tls(cluster: Section, user: Section) -> TlsSettings:
    insecure = cluster.flag("insecure-skip-tls-verify")
    ca_data, ca_file = cluster.data("certificate-authority-data"), cluster.path("certificate-authority")
    if insecure and (ca_data or ca_file):
        raise cluster.bad(
            "insecure-skip-tls-verify",
            "cannot be combined with certificate-authority: keep the authority, drop the flag",
        )
    certificate_data, certificate_file = user.data("client-certificate-data"), user.path("client-certificate")
    key_data, key_file = user.data("client-key-data"), user.path("client-key")
    if bool(certificate_data or certificate_file) != bool(key_data or key_file):
        missing = "client-key" if certificate_data or certificate_file else "client-certificate"
        raise user.bad(missing, "is missing: a client certificate and its key come together")
    return TlsSettings(
        ca_file="" if ca_data else _existing(cluster, "certificate-authority", ca_file),
        ca_data=ca_data,
        certificate_file="" if certificate_data else _existing(user, "client-certificate", certificate_file),
        certificate_data=certificate_data,
        key_file="" if key_data else _existing(user, "client-key", key_file),
        key_data=key_data,
        server_name=cluster.text("tls-server-name"),
        insecure=insecure,
    )


def _proxy(cluster: Section) -> Proxy | None:
    url = cluster.text("proxy-url")
    try:
        return Proxy.parse(url) if url else None
    except ValueError as error:
        raise cluster.bad("proxy-url", f"cannot be used: {error}") from error


def _existing(section: Section, key: str, path: str) -> str:
    if path and not Path(path).exists():
        raise section.bad(key, f"names {path}, which does not exist")
    return path


def _impersonation(user: Section) -> Impersonation | None:
    name = user.text("as")
    groups, extra = user.items("as-groups"), user.mapping("as-user-extra")
    if not name:
        if groups or extra or user.text("as-uid"):
            raise user.bad("as", "is missing: as-groups, as-uid and as-user-extra need it")
        return None
    if not _are_texts(groups):
        raise user.bad("as-groups", "must be a list of texts")
    for key, values in extra.items():
        if not _are_texts([key]) or not _are_texts(values):
            raise user.bad(f"as-user-extra.{key}", "must be a list of texts")
    return Impersonation(user=name, groups=tuple(groups), uid=user.text("as-uid"), extra=dict(extra))


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _credentials(user: Section, cluster: Section) -> Credentials:
    token, token_file, username = user.text("token"), user.path("tokenFile"), user.text("username")
    if user.mapping("auth-provider"):
        raise user.bad("auth-provider", "is no longer supported by Kubernetes: use the exec plugin of your provider")
    if (username or user.text("password")) and (token or token_file):
        raise user.bad("token and username/password", "exclude each other: keep one way to authenticate")
    if not sendable(token):
        raise user.bad("token", "has line breaks or is not ASCII: no header can hold it")
    if token_file:
        return TokenFile(token_file, fallback=token)
    if token:
        return Static.bearer(token)
    if username:
        return Static.basic(username, user.text("password"))
    # As with kubectl, a plugin beside a token or a password is not asked.
    if plugin := user.mapping("exec"):
        return ExecPlugin(_exec_spec(Section(user.label, user.file, plugin), cluster))
    return ANONYMOUS


def _exec_spec(section: Section, cluster: Section) -> ExecSpec:
    command, version = section.text("command"), section.text("apiVersion")
    mode = section.text("interactiveMode")
    if not command:
        raise section.bad("exec.command", "is missing")
    if not mode and version == VERSIONS[0]:
        raise section.bad("exec.interactiveMode", f"is missing; {VERSIONS[0]} asks for Never, IfAvailable or Always")
    # A command with a path in it is relative to the file; a bare name is looked up on the PATH.
    program = section.path("command") if os.sep in command else command
    return ExecSpec(
        command=program,
        api_version=version,
        args=tuple(map(str, section.items("args"))),
        env=dict(_variable(section, pair) for pair in section.items("env")),
        install_hint=section.text("installHint"),
        interactive_mode=mode or "IfAvailable",
        cluster=_cluster_info(cluster) if section.flag("provideClusterInfo") else None,
        source=section.source,
    )


def _variable(section: Section, pair: Any) -> tuple[str, str]:
    if not isinstance(pair, dict) or not isinstance(pair.get("name"), str):
        raise section.bad("exec.env", "must be a list of {name, value}")
    return pair["name"], str(pair.get("value", ""))


def _cluster_info(cluster: Section) -> dict[str, Any]:
    """`spec.cluster` of the ExecCredential that the plugin is given."""
    ca_file = cluster.path("certificate-authority")
    ca = cluster.data("certificate-authority-data") or (Path(ca_file).read_text() if ca_file else "")
    info: dict[str, Any] = {
        "server": cluster.text("server"),
        "tls-server-name": cluster.text("tls-server-name"),
        "insecure-skip-tls-verify": cluster.flag("insecure-skip-tls-verify"),
        "certificate-authority-data": base64.b64encode(ca.encode()).decode(),
        "proxy-url": cluster.text("proxy-url"),
        "disable-compression": cluster.flag("disable-compression"),
    }
    for extension in cluster.items("extensions"):
        if isinstance(extension, dict) and extension.get("name") == EXEC_EXTENSION:
            info["config"] = extension.get("extension")
    return {key: value for key, value in info.items() if value}
