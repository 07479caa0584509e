"""Where the configuration is looked for, in which order, and what a pod brings along."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from konverge.client import Config, ConfigError, Impersonation, TlsSettings, TokenFile, in_cluster_config, load_config
from konverge.client import config as module

IN_A_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}


def kubeconfig(path: Path, server: str, context: str = "c") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "current-context": context,
        "clusters": [{"name": "k", "cluster": {"server": f"https://{server}"}}],
        "contexts": [{"name": context, "context": {"cluster": "k"}}],
    }
    path.write_text(json.dumps(content))
    return path


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder where this test's pod has its service account, with a token in it."""
    folder = tmp_path / "account"
    folder.mkdir()
    (folder / "token").write_text("of the pod")
    for function in (module._in_cluster, module.in_cluster_config):
        monkeypatch.setattr(function, "__defaults__", (folder,))
    return folder


def test_what_is_named_comes_before_the_environment_the_pod_and_the_home(tmp_path: Path, account: Path) -> None:
    env = {**IN_A_POD, "HOME": str(tmp_path), "KUBECONFIG": str(kubeconfig(tmp_path / "env", "env"))}
    kubeconfig(tmp_path / ".kube" / "config", "home", "mine")
    named = kubeconfig(tmp_path / "named", "named")
    assert load_config(kubeconfig=named, environ=env).server == "https://named"
    assert load_config(environ=env).server == "https://env"
    del env["KUBECONFIG"]
    assert load_config(environ=env).server == "https://10.0.0.1:6443"
    assert load_config(context="mine", environ=env).server == "https://home"  # a pod has no contexts
    (account / "token").unlink()
    assert load_config(environ=env).server == "https://home"
    (account / "token").write_text("again, but the host is not in the environment")
    assert load_config(environ={"HOME": str(tmp_path)}).server == "https://home"


def test_without_home_it_is_that_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubeconfig(tmp_path / ".kube" / "config", "home")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert load_config(environ={}).server == load_config(environ={"HOME": ""}).server == "https://home"


def test_the_environment_of_the_process_is_the_one_that_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path / "env", "env")))
    assert load_config().server == "https://env"
    with pytest.raises(ConfigError, match="no configuration found"):
        load_config(environ={"HOME": str(tmp_path)})


@pytest.mark.parametrize("name", ["staging", "c"])
def test_a_context_can_be_named_wherever_the_file_comes_from(tmp_path: Path, name: str) -> None:
    path = kubeconfig(tmp_path / ".kube" / "config", "k", "staging")
    for options in ({"kubeconfig": str(path)}, {"environ": {"KUBECONFIG": str(path)}}):
        if name == "staging":
            assert load_config(context=name, **options).server == "https://k"  # type: ignore[arg-type]
        else:
            with pytest.raises(ConfigError, match="no context 'c'"):
                load_config(context=name, **options)  # type: ignore[arg-type]


def test_a_proxy_of_the_environment_does_not_replace_that_of_the_file(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", "k")
    env = {"HTTPS_PROXY": "http://everywhere:1"}
    proxy = load_config(kubeconfig=path, environ=env).proxy
    assert proxy is not None
    assert proxy.host == "everywhere"
    assert load_config(kubeconfig=path, environ={}).proxy is None
    path.write_text(path.read_text().replace('"server"', '"proxy-url": "http://own:1", "server"'))
    proxy = load_config(kubeconfig=path, environ=env).proxy
    assert proxy is not None
    assert proxy.host == "own"


def test_a_proxy_of_the_environment_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"HTTPS_PROXY.*cannot be used"):
        load_config(kubeconfig=kubeconfig(tmp_path / "config", "k"), environ={"HTTPS_PROXY": "ftp://p"})


def test_a_pod_reads_its_token_from_the_file_and_finds_the_usual_port(account: Path) -> None:
    config = in_cluster_config({"KUBERNETES_SERVICE_HOST": "k"}, account)
    assert config.server == "https://k:443"
    assert isinstance(config.credentials, TokenFile)
    assert config.credentials.current().authorization == "Bearer of the pod"


def test_the_files_of_a_configuration_are_those_that_it_names() -> None:
    assert TlsSettings().files == ()
    assert TlsSettings(ca_file="ca", key_file="key").files == ("ca", "key")
    assert TlsSettings(certificate_file="crt", key_data="secret").files == ("crt",)


def test_keys_are_not_in_what_is_logged_of_a_configuration() -> None:
    tls = TlsSettings(ca_file="/ca", key_data="secret", certificate_data="secret", server_name="api", insecure=True)
    shown = repr(Config(server="https://k", tls=tls))
    assert "secret" not in shown
    assert "TlsSettings(files=('/ca',), server_name='api', insecure=True)" in shown


def test_acting_as_another_user_names_just_what_is_given() -> None:
    assert Impersonation(user="jane").headers() == [("impersonate-user", "jane")]
    everything = Impersonation(user="jane", groups=("a", "b"), uid="7", extra={"k": ["v", "w"]})
    assert everything.headers() == [
        ("impersonate-user", "jane"),
        ("impersonate-group", "a"),
        ("impersonate-group", "b"),
        ("impersonate-uid", "7"),
        ("impersonate-extra-k", "v"),
        ("impersonate-extra-k", "w"),
    ]


@pytest.mark.parametrize("server", ["k:6443", "", "httpsk", "ftp://k"])
def test_a_server_is_a_url(server: str) -> None:
    with pytest.raises(ConfigError, match=r"code: server .* must begin with https:// or http://"):
        Config(server=server)
