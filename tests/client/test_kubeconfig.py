"""Kubeconfig files: merging, paths, and errors that say where to look."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.client import ConfigError, ExecPlugin, Kubeconfig, Static, TokenFile, in_cluster_config, load_config

PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


def document(
    user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, context: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "current-context": "c",
        "clusters": [{"name": "k", "cluster": {"server": "https://k:6443/", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", **(context or {})}}],
    }


def write(path: Path, content: dict[str, Any]) -> Path:
    path.write_text(json.dumps(content))
    return path


def parse(content: dict[str, Any], file: str = "/etc/kc") -> Kubeconfig:
    return Kubeconfig.parse(content, file)


def test_a_plain_context() -> None:
    config = parse(document({"token": "t"}, {"tls-server-name": "api"}, {"namespace": "shop"})).config()
    assert config.server == "https://k:6443"
    assert config.namespace == "shop"
    assert config.tls.server_name == "api"
    assert isinstance(config.credentials, Static)
    assert config.credentials.current().authorization == "Bearer t"
    assert "t" not in repr(config.credentials.current()).split("Credential")[1].replace("authorization", "")


def test_basic_impersonation_and_proxy() -> None:
    user = {"username": "jane", "password": "pw", "as": "admin", "as-groups": ["a", "b"], "as-uid": "7"}
    config = parse(document(user, {"proxy-url": "http://proxy:3128"})).config()
    current = config.credentials.current()
    assert current is not None
    assert current.authorization == "Basic " + base64.b64encode(b"jane:pw").decode()
    assert config.impersonate is not None
    assert config.impersonate.headers()[-1] == ("impersonate-uid", "7")
    assert config.proxy is not None
    assert (config.proxy.host, config.proxy.port) == ("proxy", 3128)


def test_a_plugin_beside_a_token_or_a_password_is_not_asked() -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "x", "interactiveMode": "Never"}
    for way, sent in (({"token": "t"}, "Bearer t"), ({"username": "u", "password": "p"}, "Basic dTpw")):
        current = parse(document({**way, "exec": plugin})).config().credentials.current()
        assert current is not None
        assert current.authorization == sent


def test_relative_paths_belong_to_their_file(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(PEM)
    path = write(tmp_path / "config", document({"tokenFile": "token"}, {"certificate-authority": "ca.pem"}))
    config = Kubeconfig.read(path).config()
    assert config.tls.ca_file == str(tmp_path / "ca.pem")
    assert isinstance(config.credentials, TokenFile)
    assert config.credentials.path == tmp_path / "token"


def test_data_wins_over_files() -> None:
    data = base64.b64encode(PEM.encode()).decode()
    cluster = {"certificate-authority": "/nowhere/ca", "certificate-authority-data": data}
    tls = parse(document(cluster=cluster)).config().tls
    assert (tls.ca_file, tls.ca_data) == ("", PEM)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (document(context={"cluster": "x"}), "names 'x'"),
        (document({"token": "t", "username": "u"}), "exclude each other"),
        (document({"token": "t", "password": "p"}), "exclude each other"),
        (document({"auth-provider": {"name": "gcp"}}), "exec plugin"),
        (document({"token": "one\ntwo"}), "token has line breaks"),
        (document({"as-user-extra": {"k": ["v"]}}), "as is missing"),
        (document({"client-certificate-data": base64.b64encode(b"x").decode()}), "client-key is missing"),
        (document({"client-key": "/absent", "client-certificate": "/absent"}), "does not exist"),
        (document({"as-groups": ["a"]}), "as is missing"),
        (document({"as": "a", "as-groups": ["a", ["b"]]}), "as-groups must be a list of texts"),
        (document({"as": "a", "as-user-extra": {"k": "v"}}), "as-user-extra.k must be a list of texts"),
        (document({"as": "a", "as-user-extra": {7: ["v"]}}), "as-user-extra.7 must be a list of texts"),
        (document({"token": "t", "client-key-data": "é"}), "client-key-data is not base64"),
        (document({"token": 7}), "token must be a str"),
        (document({"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1"}}), "interactiveMode"),
        (document({"exec": {"command": "x", "apiVersion": "v1alpha1"}}), "is not supported"),
        (document(cluster={"server": ""}), "server is missing"),
        (document(cluster={"server": "k:6443"}), "must begin with https"),
        (document(cluster={"certificate-authority-data": "%"}), "is not base64"),
        (document(cluster={"proxy-url": "ftp://p"}), "proxy-url cannot be used"),
        (document(cluster={"insecure-skip-tls-verify": True, "certificate-authority": "/x"}), "cannot be combined"),
        ({**document(), "current-context": ""}, "kubectl config use-context"),
        ({**document(), "current-context": "other"}, "no context 'other'"),
        ({**document(), "users": [{"name": "u"}, {"name": "u"}]}, "repeats the name"),
        ({**document(), "users": [{}]}, r"users\[0\] needs a name"),
    ],
)
def test_errors_say_what_is_wrong_and_where(content: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as error:
        parse(content).config()
    assert "/etc/kc" in str(error.value)


@pytest.mark.parametrize("text", ["!!bool x", "!!int ''", "!!float ''"])
def test_values_that_their_tags_do_not_allow(tmp_path: Path, text: str) -> None:
    broken = tmp_path / "broken"
    broken.write_text(text)
    with pytest.raises(ConfigError, match="is not YAML"):
        Kubeconfig.read(broken)


@pytest.mark.spec("R-104")
def test_yaml_means_what_it_means_to_kubectl(tmp_path: Path) -> None:
    """`kubectl config view --raw` prints this as the texts that are expected here."""
    path = tmp_path / "config"
    path.write_text(
        "current-context: 2024-01-01\n"
        "clusters: [{name: 1:30, cluster: {server: 'https://k', insecure-skip-tls-verify: y}}]\n"
        "users: [{name: 12:34:56.5, user: {username: bob, password: 12:34, as: a, "
        "as-user-extra: {2024: [2024-01-01]}}}]\n"
        "contexts: [{name: 2024-01-01, context: {cluster: 1:30, user: 12:34:56.5, namespace: 2024-01-01T00:00:00Z}}]\n"
    )
    config = Kubeconfig.read(path).config()
    assert (config.server, config.namespace, config.tls.insecure) == ("https://k", "2024-01-01T00:00:00Z", True)
    current = config.credentials.current()
    assert current is not None
    assert current.authorization == "Basic " + base64.b64encode(b"bob:12:34").decode()
    assert config.impersonate is not None
    assert config.impersonate.extra == {"2024": ["2024-01-01"]}


@pytest.mark.spec("R-104")
@pytest.mark.parametrize(("written", "kind"), [("1234", "int"), ("1e3", "float"), ("y", "bool")])
def test_what_is_no_text_to_kubectl_is_none_here(tmp_path: Path, written: str, kind: str) -> None:
    path = write(tmp_path / "config", document({"token": "TOKEN"}))
    path.write_text(path.read_text().replace('"TOKEN"', written))
    with pytest.raises(ConfigError, match=f"token must be a str, not {kind}"):
        Kubeconfig.read(path).config()


def test_not_yaml_and_not_there(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("a: [")
    with pytest.raises(ConfigError, match="is not YAML"):
        Kubeconfig.read(broken)
    with pytest.raises(ConfigError, match="does not exist"):
        Kubeconfig.read(tmp_path / "absent")
    with pytest.raises(ConfigError, match="none of the files"):
        Kubeconfig.read_list(str(tmp_path / "absent"))


def test_a_list_of_files(tmp_path: Path) -> None:
    first = {"users": [{"name": "u", "user": {"token": "first"}}]}
    path, other = write(tmp_path / "1", first), write(tmp_path / "2", document({"token": "second"}))
    listed = os.pathsep.join(["", str(path), str(tmp_path / "absent"), str(other)])
    current = Kubeconfig.read_list(listed).config().credentials.current()
    assert current is not None
    assert current.authorization == "Bearer first"


_names = st.lists(st.sampled_from("abcd"), unique=True)


@given(st.lists(_names, min_size=1, max_size=4))
def test_the_first_to_name_a_thing_wins_with_the_whole_thing(files: list[list[str]]) -> None:
    configs = [
        parse({"users": [{"name": name, "user": {"token": str(index)}} for name in names]}, str(index))
        for index, names in enumerate(files)
    ]
    merged = Kubeconfig.merged(configs)
    for name in {name for names in files for name in names}:
        first = next(index for index, names in enumerate(files) if name in names)
        assert merged.users[name].text("token") == str(first)
        assert merged.users[name].file == str(first)


def test_where_a_configuration_is_looked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "config", document({"token": "t"}))
    env = {"KUBECONFIG": str(path), "HTTPS_PROXY": "http://proxy:1"}
    config = load_config(environ=env)
    assert config.server == "https://k:6443"
    assert config.proxy is not None
    (tmp_path / ".kube").mkdir()
    write(tmp_path / ".kube" / "config", document())
    assert load_config(environ={"HOME": str(tmp_path)}).server == "https://k:6443"
    with pytest.raises(ConfigError, match="set KUBECONFIG"):
        load_config(environ={"HOME": str(tmp_path / "absent")})


def test_in_a_pod(tmp_path: Path) -> None:
    env = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(ConfigError, match="token is missing"):
        in_cluster_config(env, tmp_path)
    (tmp_path / "token").write_text("one\n")
    (tmp_path / "namespace").write_text("shop")
    config = in_cluster_config(env, tmp_path)
    assert (config.server, config.namespace) == ("https://[fd00::1]:443", "shop")
    assert (config.tls.ca_file, in_cluster_config({**env, "KUBERNETES_SERVICE_HOST": "10.0.0.1"}, tmp_path).server) == (
        "",
        "https://10.0.0.1:443",
    )
    (tmp_path / "ca.crt").write_text("a certificate")
    (tmp_path / "namespace").write_text(" \n")
    config = in_cluster_config({"KUBERNETES_SERVICE_HOST": "k", "KUBERNETES_SERVICE_PORT": "6443"}, tmp_path)
    assert (config.tls.ca_file, config.namespace, config.server) == (
        str(tmp_path / "ca.crt"),
        "default",
        "https://k:6443",
    )
    (tmp_path / "namespace").unlink()
    assert in_cluster_config(env, tmp_path).namespace == "default"
    with pytest.raises(ConfigError, match="not in a cluster"):
        in_cluster_config({}, tmp_path)


def test_exec_is_relative_to_the_file_and_is_told_of_the_cluster() -> None:
    spec = {
        "command": "./bin/login",
        "apiVersion": "client.authentication.k8s.io/v1",
        "interactiveMode": "Never",
        "provideClusterInfo": True,
        "env": [{"name": "A", "value": "b"}],
    }
    extension = [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}]
    plugin = parse(document({"exec": spec}, {"extensions": extension})).config().credentials
    assert isinstance(plugin, ExecPlugin)
    assert plugin.spec.command == "/etc/bin/login"
    assert plugin.spec.env == {"A": "b"}
    assert plugin.spec.cluster == {"server": "https://k:6443/", "config": {"audience": "x"}}


def test_every_field_of_a_plugin_is_read() -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "login",
        "args": ["--for", 5],
        "env": [{"name": "A", "value": "1"}, {"name": "B"}],
        "installHint": "install it",
        "interactiveMode": "Never",
    }
    credentials = parse(document({"exec": plugin})).config().credentials
    assert isinstance(credentials, ExecPlugin)
    spec = credentials.spec
    assert (spec.command, spec.args, spec.env) == ("login", ("--for", "5"), {"A": "1", "B": ""})
    assert (spec.install_hint, spec.interactive_mode, spec.cluster) == ("install it", "Never", None)
    assert spec.api_version == plugin["apiVersion"]


def test_a_server_may_be_trusted_blindly_when_no_authority_is_named() -> None:
    assert parse(document(cluster={"insecure-skip-tls-verify": True})).config().tls.insecure
    assert not parse(document()).config().tls.insecure


def test_a_certificate_in_the_file_itself() -> None:
    encoded = {name: base64.b64encode(name.encode()).decode() for name in ("certificate", "key")}
    user = {"client-certificate-data": encoded["certificate"], "client-key-data": encoded["key"]}
    tls = parse(document(user)).config().tls
    assert (tls.certificate_data, tls.key_data) == ("certificate", "key")
    assert (tls.certificate_file, tls.key_file) == ("", "")
