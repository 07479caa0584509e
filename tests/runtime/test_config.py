"""Configuration: precedence, forms, and errors that name the key."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from konverge.client import Client
from konverge.objects.kinds.core_v1 import Secret
from konverge.runtime import Context, Controller, Manager
from konverge.runtime.config import (
    CacheSettings,
    Configuration,
    ConfigurationError,
    LogSettings,
    _address,
    load_configuration,
)
from konverge.runtime.declare import Settings

pytestmark = pytest.mark.spec("R-06")

DOCUMENT = """
workers: 5
queueConfig:
  maxRetries: 10
  baseDelay: 1s
  maxDelay: 5m
  rateLimiterQPS: 12.5
reconcileConfig:
  timeout: 60s
  resyncPeriod: 1h30m
  maxConcurrent: 3
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "operator.yaml"
    path.write_text(text)
    return path


def test_the_documents_example_is_accepted_as_it_is(tmp_path: Path) -> None:
    settings = load_configuration(write(tmp_path, DOCUMENT), environment={}).controller
    assert (settings.workers, settings.max_retries, settings.rate_limiter_qps) == (5, 10, 12.5)
    assert (settings.base_delay, settings.max_delay) == (1.0, 300.0)
    assert (settings.timeout, settings.resync_period) == (60.0, 5400.0)


def test_code_wins_over_environment_over_file_over_default(tmp_path: Path) -> None:
    path = write(tmp_path, "{workers: 2, queue: {maxRetries: 2, baseDelay: 2s}}")
    environment = {"KONVERGE_QUEUE_MAX_RETRIES": "3", "KONVERGE_QUEUE_BASE_DELAY": "3s"}
    code = Configuration(controller=Settings(base_delay=4))
    settings = load_configuration(path, environment=environment, code=code).controller
    assert (settings.workers, settings.max_retries, settings.base_delay) == (2, 3, 4)
    assert settings.max_delay == Settings().max_delay


KEYS = [
    ("controller", "workers", "workers", "KONVERGE_WORKERS", 16),
    ("controller", "max_retries", "queueConfig.maxRetries", "KONVERGE_QUEUE_MAX_RETRIES", 15),
    ("controller", "base_delay", "queueConfig.baseDelay", "KONVERGE_QUEUE_BASE_DELAY", 0.005),
    ("controller", "max_delay", "queueConfig.maxDelay", "KONVERGE_QUEUE_MAX_DELAY", 1000.0),
    ("controller", "rate_limiter_qps", "queueConfig.rateLimiterQPS", "KONVERGE_QUEUE_RATE_LIMITER_QPS", 10.0),
    ("controller", "rate_limiter_burst", "queueConfig.rateLimiterBurst", "KONVERGE_QUEUE_RATE_LIMITER_BURST", 100),
    ("controller", "timeout", "reconcileConfig.timeout", "KONVERGE_RECONCILE_TIMEOUT", 60.0),
    ("controller", "resync_period", "reconcileConfig.resyncPeriod", "KONVERGE_RECONCILE_RESYNC_PERIOD", 36000.0),
    ("controller", "catch_up", "reconcileConfig.catchUp", "KONVERGE_RECONCILE_CATCH_UP", 5.0),
    ("cache", "max_objects", "cache.informerCacheSize", "INFORMER_CACHE_SIZE", 0),
    ("cache", "list_timeout", "cache.listTimeout", "LIST_TIMEOUT", 60.0),
    ("cache", "streaming", "cache.enableIncrementalSync", "ENABLE_INCREMENTAL_SYNC", True),
    ("cache", "sync_timeout", "cache.syncTimeout", "KONVERGE_CACHE_SYNC_TIMEOUT", 120.0),
    ("log", "level", "log.level", "KONVERGE_LOG_LEVEL", "info"),
    ("log", "form", "log.format", "KONVERGE_LOG_FORMAT", ""),
]
PARTS: dict[str, Any] = {"controller": Settings, "cache": CacheSettings, "log": LogSettings}
OTHERS: dict[str, tuple[Any, Any]] = {
    "streaming": (False, True),
    "level": ("debug", "error"),
    "form": ("json", "text"),
}
"""What a file and the environment say, where 200 and 300 do not fit."""


@pytest.mark.parametrize(("part", "attribute", "path", "variable", "default"), KEYS, ids=[key[1] for key in KEYS])
def test_every_key_has_a_file_a_variable_and_code_and_each_beats_the_one_before(
    tmp_path: Path, part: str, attribute: str, path: str, variable: str, default: Any
) -> None:
    """Code has the last word even where it says the default."""

    def value(**options: Any) -> Any:
        options.setdefault("environment", {})
        return getattr(getattr(load_configuration(**options), part), attribute)

    in_file, in_environment = OTHERS.get(attribute, (200, 300))
    *parents, name = path.split(".")
    file = write(tmp_path, "".join(f"{parent}: {{" for parent in parents) + f"{name}: {in_file}" + "}" * len(parents))
    environment = {variable: str(in_environment)}
    code = Configuration(**{part: PARTS[part](**{attribute: default})})
    room = {} if attribute == "max_delay" else {"KONVERGE_QUEUE_MAX_DELAY": "1000"}
    assert value() == default
    assert value(file=file, environment=room) == in_file
    assert value(file=file, environment=environment | room) == in_environment
    assert value(file=file, environment=environment | room, code=code) == default
    assert value(file=file, environment=room, code=Configuration()) == in_file


def test_every_setting_has_a_key() -> None:
    options = {(part, field.name) for part, options in PARTS.items() for field in fields(options)}
    assert {(key[0], key[1]) for key in KEYS} == options


def test_the_environment_may_name_the_file(tmp_path: Path) -> None:
    named, other = write(tmp_path, "{workers: 2}"), tmp_path / "other.yaml"
    other.write_text("{workers: 3}")
    environment = {"KONVERGE_CONFIG": str(named)}
    assert load_configuration(environment=environment).controller.workers == 2
    assert load_configuration(other, environment=environment).controller.workers == 3


def test_a_manager_reads_the_environment_for_what_code_leaves_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KONVERGE_CONFIG", str(write(tmp_path, "{workers: 2, queue: {maxRetries: 2}}")))
    monkeypatch.setenv("KONVERGE_QUEUE_MAX_RETRIES", "3")
    monkeypatch.setenv("INFORMER_CACHE_SIZE", "7")
    plain = Manager()
    assert (plain.settings.workers, plain.settings.max_retries, plain.config.cache.max_objects) == (2, 3, 7)
    given = Manager(settings=Settings(workers=16), config=Configuration(cache=CacheSettings(max_objects=0)))
    assert (given.settings.workers, given.settings.max_retries, given.config.cache.max_objects) == (16, 3, 0)
    assert given.declared_config.cache.given == {"max_objects"}, "what code gave, and nothing of the environment"
    loaded = Manager(config=load_configuration(environment={}))
    assert (loaded.settings, loaded.config.cache) == (Settings(), CacheSettings())


@pytest.mark.virtual
async def test_settings_of_a_controller_leave_the_others_to_the_manager(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def reconcile(ctx: Context[Secret]) -> None: ...

    monkeypatch.setenv("KONVERGE_QUEUE_BASE_DELAY", "3s")
    own = Settings(timeout=60, workers=3)
    manager = Manager(client, settings=Settings(timeout=10, max_retries=4))
    manager.add(Controller(Secret, reconcile, settings=own)).add(Controller(Secret, reconcile, name="plain"))
    async with manager.running():
        settings, plain = (manager.engines[name].settings for name in ("secret", "plain"))
    assert (settings.timeout, settings.workers, settings.max_retries, settings.base_delay) == (60, 3, 4, 3)
    assert (plain.timeout, plain.workers, plain.max_retries, plain.base_delay) == (10, 16, 4, 3)


@pytest.mark.virtual
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (Settings(workers=0), "workers .workers. must be at least 1, not 0"),
        (Settings(timeout=0), "timeout .reconcileConfig.timeout. must be greater than 0"),
        (Settings(base_delay=3, max_delay=2), "must not be above"),
    ],
)
async def test_impossible_settings_in_code_are_refused(client: Client, settings: Settings, message: str) -> None:
    async def reconcile(ctx: Context[Secret]) -> None: ...

    with pytest.raises(ConfigurationError, match=message):
        load_configuration(environment={}, code=Configuration(controller=settings))
    with pytest.raises(ConfigurationError, match=message):
        async with Manager(client).add(Controller(Secret, reconcile, settings=settings)).running():
            pass


def test_cache_settings_have_the_names_that_deployments_use() -> None:
    environment = {"INFORMER_CACHE_SIZE": "10000", "LIST_TIMEOUT": "90s", "ENABLE_INCREMENTAL_SYNC": "false"}
    cache = load_configuration(environment=environment).cache
    assert cache == CacheSettings(max_objects=10000, list_timeout=90.0, streaming=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{workrs: 1}", "unknown key workrs; known keys are workers"),
        ("{workers: many}", "workers must be a whole number, not 'many'"),
        ("{workers: true}", "workers must be a whole number"),
        ("{workers: 0}", "workers must be at least 1"),
        ("{queue: {baseDelay: soon}}", "queue.baseDelay must be a duration such as 60s"),
        ("{queue: {rateLimiterQPS: 0}}", "queue.rateLimiterQPS must be greater than 0"),
        ("{queue: {baseDelay: 10s, maxDelay: 1s}}", "baseDelay .10 s. must not be above"),
        ("[1]", "must be a mapping"),
        ("{queue: 3}", "unknown key queue"),
        ("a: [", "is not YAML"),
    ],
)
def test_errors_in_a_file_name_the_file_and_the_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_configuration(write(tmp_path, text), environment={})


def test_errors_in_the_environment_name_the_variable() -> None:
    with pytest.raises(ConfigurationError, match="ENABLE_INCREMENTAL_SYNC must be true or false, not 'maybe'"):
        load_configuration(environment={"ENABLE_INCREMENTAL_SYNC": "maybe"})


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_configuration(tmp_path / "absent.yaml", environment={})


@pytest.mark.parametrize(
    ("variable", "text", "value"),
    [
        ("ENABLE_INCREMENTAL_SYNC", "TRUE", True),
        ("ENABLE_INCREMENTAL_SYNC", "1", True),
        ("ENABLE_INCREMENTAL_SYNC", "False", False),
        ("ENABLE_INCREMENTAL_SYNC", "0", False),
        ("LIST_TIMEOUT", "90", 90.0),
        ("LIST_TIMEOUT", "1.5", 1.5),
        ("LIST_TIMEOUT", "1m30s", 90.0),
        ("KONVERGE_WORKERS", "1", 1),
        ("KONVERGE_QUEUE_MAX_RETRIES", "0", 0),
        ("KONVERGE_QUEUE_RATE_LIMITER_BURST", "1", 1),
        ("KONVERGE_QUEUE_RATE_LIMITER_QPS", "0.5", 0.5),
        ("INFORMER_CACHE_SIZE", "0", 0),
    ],
)
def test_the_forms_of_a_value_in_the_environment(variable: str, text: str, value: Any) -> None:
    (key,) = (key for key in KEYS if key[3] == variable)
    read = getattr(getattr(load_configuration(environment={variable: text}), key[0]), key[1])
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("ENABLE_INCREMENTAL_SYNC", "yes"),
        ("LIST_TIMEOUT", "0"),
        ("LIST_TIMEOUT", "1 day"),
        ("LIST_TIMEOUT", "-5"),
        ("KONVERGE_WORKERS", "0"),
        ("KONVERGE_WORKERS", "1.5"),
        ("KONVERGE_QUEUE_MAX_RETRIES", "-1"),
        ("KONVERGE_QUEUE_RATE_LIMITER_BURST", "0"),
        ("KONVERGE_QUEUE_RATE_LIMITER_QPS", "fast"),
        ("INFORMER_CACHE_SIZE", "-1"),
        ("KONVERGE_LOG_LEVEL", "loud"),
        ("KONVERGE_LOG_FORMAT", "xml"),
    ],
)
def test_impossible_values_in_the_environment_are_refused(variable: str, text: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{variable} must be .*, not {text!r}$"):
        load_configuration(environment={variable: text})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{queue: {rateLimiterQPS: true}}", "queue.rateLimiterQPS must be a number, not True"),
        ("{queue: {rateLimiterQPS: [1]}}", "queue.rateLimiterQPS must be a number"),
        ("{workers: 1.5}", "workers must be a whole number, not 1.5"),
        ("{workers: [1]}", "workers must be a whole number"),
        ("{cache: {listTimeout: true}}", "cache.listTimeout must be a duration"),
        ("{cache: {listTimeout: [1]}}", "cache.listTimeout must be a duration"),
        ("{cache: {other: 1}}", "unknown key cache.other"),
        ("{workers: {a: 1}}", "unknown key workers.a"),
        ("{1: 2}", "unknown key 1"),
    ],
)
def test_values_of_the_wrong_type_in_a_file_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_configuration(write(tmp_path, text), environment={})


def test_numbers_in_a_file_may_be_texts_and_durations_may_be_numbers(tmp_path: Path) -> None:
    file = write(tmp_path, "{workers: '7', queue: {rateLimiterQPS: '2', baseDelay: 0.5, maxDelay: 2}}")
    settings = load_configuration(file, environment={}).controller
    assert (settings.workers, settings.rate_limiter_qps) == (7, 2.0)
    assert (settings.base_delay, settings.max_delay) == (0.5, 2.0)


@pytest.mark.parametrize(
    "text", ["{workers: 2, reconcile: {maxConcurrent: 3}}", "{reconcile: {maxConcurrent: 3}, workers: 2}"]
)
def test_of_several_names_of_a_key_the_plain_one_counts(tmp_path: Path, text: str) -> None:
    assert load_configuration(write(tmp_path, text), environment={}).controller.workers == 2
    other = write(tmp_path, "{reconcile: {maxConcurrent: 3}}")
    assert load_configuration(other, environment={}).controller.workers == 3


def test_an_empty_file_and_empty_variables_say_nothing(tmp_path: Path) -> None:
    environment = {"KONVERGE_CONFIG": "", "KONVERGE_WORKERS": "", "LIST_TIMEOUT": ""}
    assert load_configuration(write(tmp_path, ""), environment=environment) == Configuration()
    assert load_configuration(environment=environment) == Configuration()
    assert load_configuration(environment={}).loaded
    assert not Configuration().loaded


def test_a_named_file_goes_before_that_of_the_environment(tmp_path: Path) -> None:
    named = write(tmp_path, "{workers: 2}")
    assert load_configuration(named, environment={"KONVERGE_CONFIG": "/absent"}).controller.workers == 2


def test_settings_of_the_cache_in_code_are_checked_too() -> None:
    with pytest.raises(ConfigurationError, match=r"list_timeout .* must be greater than 0"):
        load_configuration(environment={}, code=Configuration(cache=CacheSettings(list_timeout=0)))
    equal = Configuration(controller=Settings(base_delay=5, max_delay=5))
    assert load_configuration(environment={}, code=equal).controller.max_delay == 5


@pytest.mark.parametrize(
    ("address", "wrong"),
    [("", False), (":8080", False), ("host:65535", False), ("host:65536", True), ("host:http", True), ("8080", True)],
)
def test_an_address_has_a_port_that_there_is(address: str, wrong: bool) -> None:
    assert _address(address) == ("must be HOST:PORT or :PORT" if wrong else "")
