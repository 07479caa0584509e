"""Configuration: code over environment over file over defaults. The only module that reads the environment for it.

The file is YAML or JSON with camelCase names:

    workers: 5
    queueConfig: {maxRetries: 10, baseDelay: 1s, maxDelay: 5m, rateLimiterQPS: 10}
    reconcileConfig: {timeout: 60s, resyncPeriod: 10h, maxConcurrent: 5}
    cache: {informerCacheSize: 10000, listTimeout: 60s, enableIncrementalSync: true}
    log: {level: debug, format: json}
    metrics: {bindAddress: ":8443", secure: true, certDir: /certs}
    debug: true

Every key has an environment variable (`KONVERGE_QUEUE_MAX_RETRIES`); the cache's go by the names that deployments use
(`INFORMER_CACHE_SIZE`, `LIST_TIMEOUT`, `ENABLE_INCREMENTAL_SYNC`). `KONVERGE_CONFIG` names the file where the program
does not. A key that is unknown, of the wrong type or impossible is refused with its name and its source.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from konverge.objects.durations import DurationError, duration_seconds
from konverge.runtime.declare import Settings
from konverge.runtime.given import Options

LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMS = ("text", "json")


class ConfigurationError(Exception):
    """A key that cannot be used; the message names it and its source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSettings(Options):
    """How caches are filled."""

    max_objects: int = 0
    """INFORMER_CACHE_SIZE: objects per cache at most; 0 is no bound."""
    list_timeout: float = 60.0
    streaming: bool = True
    """ENABLE_INCREMENTAL_SYNC: the first state as a stream instead of pages."""
    sync_timeout: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings(Options):
    """What a program logs, unless it has set up the root logger itself."""

    level: str = "info"
    """KONVERGE_LOG_LEVEL: debug, info, warning or error."""
    form: str = ""
    """KONVERGE_LOG_FORMAT: text or json; by default text on a terminal and JSON elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSettings(Options):
    """What a program serves besides health."""

    debug: bool = False
    """KONVERGE_DEBUG: the story of every reconcile, at /debug/reconciles."""
    tracing: bool = False
    """KONVERGE_TRACING: OpenTelemetry spans of reconciles, by the provider of the process (needs konverge[otel])."""
    metrics_address: str = ""
    """KONVERGE_METRICS_BIND_ADDRESS: metrics apart from health, at HOST:PORT; with `:PORT` on all addresses."""
    metrics_secure: bool = False
    """KONVERGE_METRICS_SECURE: over TLS, and to callers whom the API server knows and allows."""
    metrics_certificates: str = ""
    """KONVERGE_METRICS_CERT_DIR: a folder with tls.crt and tls.key; without one, the process makes its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Everything that can be configured. What is given here in code counts more than the environment and a file."""

    controller: Settings = field(default_factory=Settings)
    cache: CacheSettings = field(default_factory=CacheSettings)
    log: LogSettings = field(default_factory=LogSettings)
    serving: ServingSettings = field(default_factory=ServingSettings)
    loaded: bool = field(default=False, repr=False, compare=False)
    """Made by `load_configuration`: the environment and the file are in it already."""


class _Key(msgspec.Struct, frozen=True):
    """One setting: its attribute, its names in a file and in the environment, how it is read and checked."""

    part: str
    attribute: str
    paths: tuple[str, ...]
    variable: str
    read: Callable[[Any], Any]
    check: Callable[[Any], str] = lambda value: ""


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("must be a whole number")
    try:
        return int(value)
    except ValueError:
        raise ValueError("must be a whole number") from None


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("must be a number")
    try:
        return float(value)
    except ValueError:
        raise ValueError("must be a number") from None


def _seconds(value: Any) -> float:
    """A duration such as `60s`, `5m`, `1h30m`, or a number of seconds."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and re.fullmatch(r"[0-9]+(\.[0-9]+)?", value):
        return float(value)  # all that the environment has is text
    try:
        return duration_seconds(value)
    except (DurationError, TypeError):
        raise ValueError("must be a duration such as 60s, 5m or 1h30m") from None


def _boolean(value: Any) -> bool:
    boolean = {"true": True, "1": True, "false": False, "0": False}.get(str(value).lower())
    if boolean is None:
        raise ValueError("must be true or false")
    return boolean


def _word(value: Any) -> str:
    return str(value).lower()


def _one_of(*choices: str) -> Callable[[Any], str]:
    known = [choice for choice in choices if choice]
    return lambda value: "" if value in choices else f"must be {', '.join(known[:-1])} or {known[-1]}"


def _at_least(least: float) -> Callable[[Any], str]:
    return lambda value: "" if value >= least else f"must be at least {least:g}"


def _positive(value: Any) -> str:
    return "" if value > 0 else "must be greater than 0"


def _address(value: Any) -> str:
    _, colon, port = str(value).rpartition(":")
    return "" if not value or (colon and port.isdigit() and int(port) < 65536) else "must be HOST:PORT or :PORT"


_KEYS = (
    _Key("controller", "workers", ("workers", "reconcileConfig.maxConcurrent", "reconcile.maxConcurrent"),
         "KONVERGE_WORKERS", _integer, _at_least(1)),
    _Key("controller", "max_retries", ("queueConfig.maxRetries", "queue.maxRetries"),
         "KONVERGE_QUEUE_MAX_RETRIES", _integer, _at_least(0)),
    _Key("controller", "base_delay", ("queueConfig.baseDelay", "queue.baseDelay"),
         "KONVERGE_QUEUE_BASE_DELAY", _seconds, _positive),
    _Key("controller", "max_delay", ("queueConfig.maxDelay", "queue.maxDelay"),
         "KONVERGE_QUEUE_MAX_DELAY", _seconds, _positive),
    _Key("controller", "rate_limiter_qps", ("queueConfig.rateLimiterQPS", "queue.rateLimiterQPS"),
         "KONVERGE_QUEUE_RATE_LIMITER_QPS", _number, _positive),
    _Key("controller", "rate_limiter_burst", ("queueConfig.rateLimiterBurst", "queue.rateLimiterBurst"),
         "KONVERGE_QUEUE_RATE_LIMITER_BURST", _integer, _at_least(1)),
    _Key("controller", "timeout", ("reconcileConfig.timeout", "reconcile.timeout"),
         "KONVERGE_RECONCILE_TIMEOUT", _seconds, _positive),
    _Key("controller", "resync_period", ("reconcileConfig.resyncPeriod", "reconcile.resyncPeriod"),
         "KONVERGE_RECONCILE_RESYNC_PERIOD", _seconds, _positive),
    _Key("controller", "catch_up", ("reconcileConfig.catchUp", "reconcile.catchUp"),
         "KONVERGE_RECONCILE_CATCH_UP", _seconds, _positive),
    _Key("cache", "max_objects", ("cache.informerCacheSize",), "INFORMER_CACHE_SIZE", _integer, _at_least(0)),
    _Key("cache", "list_timeout", ("cache.listTimeout",), "LIST_TIMEOUT", _seconds, _positive),
    _Key("cache", "streaming", ("cache.enableIncrementalSync",), "ENABLE_INCREMENTAL_SYNC", _boolean),
    _Key("cache", "sync_timeout", ("cache.syncTimeout",), "KONVERGE_CACHE_SYNC_TIMEOUT", _seconds, _positive),
    _Key("log", "level", ("log.level",), "KONVERGE_LOG_LEVEL", _word, _one_of(*LOG_LEVELS)),
    _Key("serving", "debug", ("debug",), "KONVERGE_DEBUG", _boolean),
    _Key("serving", "tracing", ("tracing",), "KONVERGE_TRACING", _boolean),
    _Key("serving", "metrics_address", ("metrics.bindAddress",), "KONVERGE_METRICS_BIND_ADDRESS", str, _address),
    _Key("serving", "metrics_secure", ("metrics.secure",), "KONVERGE_METRICS_SECURE", _boolean),
    _Key("serving", "metrics_certificates", ("metrics.certDir",), "KONVERGE_METRICS_CERT_DIR", str),
    _Key("log", "form", ("log.format",), "KONVERGE_LOG_FORMAT", _word, _one_of("", *LOG_FORMS)),
)  # fmt: skip


def load_configuration(
    file: str | Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    code: Configuration | None = None,
) -> Configuration:
    """The configuration of this process.

    `code` is what the program sets itself; what is given there wins. Without a file, `KONVERGE_CONFIG` may name one.
    Raises ConfigurationError.

        config = load_configuration("operator.yaml")
    """
    variables = os.environ if environment is None else environment
    file = file or variables.get("KONVERGE_CONFIG") or None
    values = {} if file is None else _from_file(Path(file))
    values |= _from_environment(variables)
    controller, cache, log, serving = (_of_part(values, part) for part in ("controller", "cache", "log", "serving"))
    code = code or Configuration()
    settings, caches = code.controller.over(Settings(**controller)), code.cache.over(CacheSettings(**cache))
    logs, serves = code.log.over(LogSettings(**log)), code.serving.over(ServingSettings(**serving))
    check_settings(settings)
    _check("cache", caches)
    _check("log", logs)
    _check("serving", serves)
    return Configuration(controller=settings, cache=caches, log=logs, serving=serves, loaded=True)


def _of_part(values: dict[tuple[str, str], Any], part: str) -> dict[str, Any]:
    return {attribute: value for (of, attribute), value in values.items() if of == part}


def _from_file(path: Path) -> dict[tuple[str, str], Any]:
    flat = _flatten(_read(path), "", str(path))
    by_path = {name: key for key in _KEYS for name in key.paths}
    unknown = [name for name in flat if name not in by_path]
    if unknown:
        known = ", ".join(key.paths[0] for key in _KEYS)
        raise ConfigurationError(f"{path}: unknown key {unknown[0]}; known keys are {known}")
    values: dict[tuple[str, str], Any] = {}
    for name, value in flat.items():
        key = by_path[name]
        # `workers` has several names; the plain one wins.
        if (key.part, key.attribute) not in values or name == key.paths[0]:
            values[key.part, key.attribute] = _value(key, value, f"{path}: {name}")
    return values


def _read(path: Path) -> Any:
    import yaml  # only a program with a file needs it

    try:
        return yaml.safe_load(path.read_bytes()) or {}
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path}: is not YAML: {error}") from error


def _flatten(node: Any, prefix: str, source: str) -> dict[str, Any]:
    if not isinstance(node, dict):
        raise ConfigurationError(f"{source}: {prefix or 'the file'} must be a mapping")
    flat: dict[str, Any] = {}
    for name, value in node.items():
        path = f"{prefix}.{name}" if prefix else str(name)
        if isinstance(value, dict):
            flat |= _flatten(value, path, source)
        else:
            flat[path] = value
    return flat


def _from_environment(environment: Mapping[str, str]) -> dict[tuple[str, str], Any]:
    return {
        (key.part, key.attribute): _value(key, environment[key.variable], key.variable)
        for key in _KEYS
        if environment.get(key.variable)
    }


def _value(key: _Key, value: Any, where: str) -> Any:
    try:
        read = key.read(value)
    except ValueError as error:
        raise ConfigurationError(f"{where} {error}, not {value!r}") from None
    problem = key.check(read)
    if problem:
        raise ConfigurationError(f"{where} {problem}, not {value!r}")
    return read


def check_settings(settings: Settings) -> None:
    """Refuse settings that are impossible or contradict each other, wherever each of them comes from."""
    _check("controller", settings)
    if settings.base_delay > settings.max_delay:
        raise ConfigurationError(
            f"queueConfig.baseDelay ({settings.base_delay:g} s) must not be above "
            f"queueConfig.maxDelay ({settings.max_delay:g} s)"
        )


def _check(part: str, options: Options) -> None:
    """Values that code gives; those of the other sources were checked when they were read."""
    for key in _KEYS:
        if key.part == part:
            value = getattr(options, key.attribute)
            if problem := key.check(value):
                raise ConfigurationError(f"{key.attribute} ({key.paths[0]}) {problem}, not {value!r}")
