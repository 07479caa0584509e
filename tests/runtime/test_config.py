"""Configuration: precedence, forms, and errors that name the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from konverge.runtime.config import CacheSettings, Configuration, ConfigurationError, load_configuration
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
