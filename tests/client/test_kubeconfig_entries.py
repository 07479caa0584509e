"""Every key of a kubeconfig: what it becomes, and what is said of one that cannot be used."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from konverge.client import ConfigError, ExecPlugin, Kubeconfig, TokenFile
from konverge.client.credentials import ANONYMOUS
from konverge.client.exec_plugin import VERSIONS
from konverge.client.kubeconfig import MAX_BYTES
from tests.client.test_kubeconfig import PEM, document, parse, write

EXEC = {"command": "login", "apiVersion": VERSIONS[0], "interactiveMode": "Never"}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def said_of(content: Any) -> str:
    with pytest.raises(ConfigError) as error:
        parse(content).config()
    return str(error.value)


def plugin_of(user: dict[str, Any], cluster: dict[str, Any] | None = None) -> ExecPlugin:
    credentials = parse(document({"exec": {**EXEC, **user}}, cluster)).config().credentials
    assert isinstance(credentials, ExecPlugin)
    return credentials


# ------------------------------------------------------------------ the whole of it


def test_what_is_not_said_has_its_usual_value() -> None:
    config = parse(document()).config()
    assert (config.namespace, config.compression, config.proxy, config.impersonate) == ("default", True, None, None)
    assert config.credentials is ANONYMOUS
    assert config.tls.files == ()
    assert (config.tls.insecure, config.tls.server_name, config.tls.ca_data) == (False, "", "")
    assert config.source == "context 'c' in /etc/kc"
    assert not parse(document(cluster={"disable-compression": True})).config().compression


def test_a_context_needs_no_user_but_one_that_it_names_must_be_there() -> None:
    assert parse(document(context={"user": ""})).config().credentials is ANONYMOUS
    said = said_of(document(context={"user": "absent"}))
    assert said == "context 'c' in /etc/kc: user names 'absent', which none of /etc/kc defines (defined: u)"
    assert "(defined: none)" in said_of({**document(), "clusters": []})
    assert "cluster names ''" in said_of(document(context={"cluster": ""}))


def test_the_contexts_to_choose_from_are_listed() -> None:
    two = [{"name": "d", "context": {}}, {"name": "b", "context": {}}]
    assert said_of({"contexts": two}).startswith("no current-context in /etc/kc: name one (contexts: b, d)")
    assert said_of({"contexts": two, "current-context": "x"}) == "there is no context 'x' in /etc/kc (contexts: b, d)"
    assert "(contexts: none)" in said_of({"current-context": "x"})


def test_a_context_by_name_is_not_the_current_one() -> None:
    content = document({"token": "t"})
    content["contexts"].append({"name": "other", "context": {"cluster": "k", "namespace": "bank"}})
    assert parse(content).config("other").namespace == "bank"
    assert parse(content).config().namespace == "default"


def test_the_first_current_context_wins_and_all_files_are_named() -> None:
    first, second = {"current-context": "a", "contexts": []}, {"current-context": "b", "contexts": []}
    merged = Kubeconfig.merged([parse({}, "/0"), parse(first, "/1"), parse(second, "/2")])
    assert (merged.current_context, merged.files) == ("a", ["/0", "/1", "/2"])
    with pytest.raises(ConfigError, match="no context 'a' in /0, /1, /2"):
        merged.config()


@pytest.mark.parametrize("kind", ["clusters", "users", "contexts"])
def test_the_first_file_to_define_an_entry_wins(kind: str) -> None:
    singular = kind.removesuffix("s")
    files = [parse({kind: [{"name": "n", singular: {"key": name}}]}, f"/{name}") for name in ("1", "2")]
    entry = getattr(Kubeconfig.merged(files), kind)["n"]
    assert (entry.text("key"), entry.source) == ("1", f"{singular} 'n' in /1")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([], "not a kubeconfig: the top level must be a mapping"),
        ({"clusters": {}}, "clusters must be a list, not dict"),
        ({"clusters": ["k"]}, "clusters[0] needs a name"),
        ({"clusters": [{"name": ""}]}, "clusters[0] needs a name"),
        ({"clusters": [{"name": 7}]}, "clusters[0] needs a name"),
        ({"clusters": [{"name": "k", "cluster": []}]}, "cluster must be a dict, not list"),
        ({"current-context": 7}, "current-context must be a str, not int"),
        (document(cluster={"insecure-skip-tls-verify": "yes"}), "insecure-skip-tls-verify must be a bool, not str"),
        (document({"tokenFile": "t", "username": "u"}), "exclude each other"),
        (document({"tokenFile": "t", "password": "p"}), "exclude each other"),
        (document({"client-key-data": encoded("k")}), "client-certificate is missing"),
        (document({"client-key": "/absent"}), "client-certificate is missing"),
        (document({"client-certificate": "/absent"}), "client-key is missing"),
        (document({"as-uid": "7"}), "as is missing"),
        (document({"as": "a", "as-user-extra": {"k": [7]}}), "as-user-extra.k must be a list of texts"),
        (document(cluster={"certificate-authority": "/absent/ca"}), "names /absent/ca, which does not exist"),
        (document(cluster={"certificate-authority-data": base64.b64encode(b"\xff").decode()}), "is not base64 of PEM"),
        (
            document(cluster={"insecure-skip-tls-verify": True, "certificate-authority-data": encoded(PEM)}),
            "cannot be combined with certificate-authority",
        ),
        (document({"exec": {**EXEC, "command": ""}}), "exec.command is missing"),
        (document({"exec": {**EXEC, "interactiveMode": "Sometimes"}}), "exec.interactiveMode must be one of"),
        (document({"exec": {**EXEC, "env": ["A=b"]}}), "exec.env must be a list of {name, value}"),
        (document({"exec": {**EXEC, "env": [{"value": "b"}]}}), "exec.env must be a list of {name, value}"),
        (document({"exec": {**EXEC, "env": [{"name": 7}]}}), "exec.env must be a list of {name, value}"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_file(content: Any, said: str) -> None:
    text = said_of(content)
    assert said in text
    assert "/etc/kc" in text


# ------------------------------------------------------------------ files


def test_a_home_may_be_written_as_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path / "config", document({"tokenFile": "~/token"}))
    for config in (Kubeconfig.read("~/config").config(), Kubeconfig.read_list("~/config").config()):
        assert isinstance(config.credentials, TokenFile)
        assert config.credentials.path == tmp_path / "token"


def test_an_empty_file_is_a_kubeconfig_without_contexts(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("")
    with pytest.raises(ConfigError, match=r"no current-context in .*config"):
        Kubeconfig.read(tmp_path / "config").config()


def test_a_file_that_is_no_kubeconfig_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("{}".ljust(MAX_BYTES))
    assert Kubeconfig.read(path).files == [str(path)]
    path.write_text("{}".ljust(MAX_BYTES + 1))
    with pytest.raises(ConfigError, match=f"is larger than {MAX_BYTES} bytes"):
        Kubeconfig.read(path)


def test_a_folder_in_the_place_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"cannot read the kubeconfig {tmp_path}: Is a directory"):
        Kubeconfig.read(tmp_path)


def test_certificates_from_files_and_from_data(tmp_path: Path) -> None:
    for name in ("ca", "crt", "key"):
        (tmp_path / name).write_text(PEM)
    files = {"client-certificate": "crt", "client-key": "key"}
    file = str(tmp_path / "config")
    tls = parse(document(files, {"certificate-authority": "ca"}), file).config().tls
    assert tls.files == tuple(str(tmp_path / name) for name in ("ca", "crt", "key"))
    assert (tls.ca_data, tls.certificate_data, tls.key_data) == ("", "", "")
    data = {"client-certificate-data": encoded("C"), "client-key-data": encoded("K")[:2] + "\n" + encoded("K")[2:]}
    tls = parse(document({**files, **data}), file).config().tls
    assert (tls.files, tls.certificate_data, tls.key_data) == ((), "C", "K")
    mixed = {"client-certificate": "crt", "client-key-data": encoded("K")}
    tls = parse(document(mixed), file).config().tls
    assert (tls.files, tls.certificate_data, tls.key_data) == ((str(tmp_path / "crt"),), "", "K")


def test_a_token_stands_in_for_its_file_until_there_is_one(tmp_path: Path) -> None:
    config = parse(document({"token": "written here", "tokenFile": "token"}), str(tmp_path / "config")).config()
    current = config.credentials.current()
    assert current is not None
    assert current.authorization == "Bearer written here"
    (tmp_path / "token").write_text("of the file")
    config = parse(document({"token": "written here", "tokenFile": "token"}), str(tmp_path / "config")).config()
    current = config.credentials.current()
    assert current is not None
    assert current.authorization == "Bearer of the file"


# ------------------------------------------------------------------ users


def test_everything_about_acting_as_another_user() -> None:
    user = {"as": "jane", "as-groups": ["a", "7"], "as-uid": "u", "as-user-extra": {"k": ["v", "w"]}}
    acting = parse(document(user)).config().impersonate
    assert acting is not None
    assert (acting.user, acting.groups, acting.uid, acting.extra) == ("jane", ("a", "7"), "u", {"k": ["v", "w"]})


def test_a_password_may_be_empty() -> None:
    current = parse(document({"username": "jane"})).config().credentials.current()
    assert current is not None
    assert current.authorization == "Basic " + encoded("jane:")


def test_a_plugin_of_the_older_version_may_leave_out_whether_it_asks() -> None:
    spec = plugin_of({"apiVersion": VERSIONS[1], "interactiveMode": None}).spec
    assert (spec.interactive_mode, spec.api_version) == ("IfAvailable", VERSIONS[1])
    assert plugin_of({"apiVersion": VERSIONS[1], "interactiveMode": "Always"}).spec.interactive_mode == "Always"
    assert spec.source == "user 'u' in /etc/kc"


@pytest.mark.parametrize(
    ("command", "program"), [("login", "login"), ("bin/login", "/etc/bin/login"), ("/opt/login", "/opt/login")]
)
def test_a_bare_command_is_left_to_the_path(command: str, program: str) -> None:
    assert plugin_of({"command": command}).spec.command == program


def test_what_a_plugin_hears_of_its_cluster(tmp_path: Path) -> None:
    (tmp_path / "ca").write_text(PEM)
    others = [{"name": "other", "extension": {"no": 1}}, "nonsense"]
    mine = [*others, {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}, *others]
    cluster: dict[str, Any] = {
        "server": "https://k:6443",
        "tls-server-name": "api",
        "proxy-url": "http://proxy:1",
        "disable-compression": True,
        "extensions": mine,
    }
    seen = {**cluster, "config": {"audience": "x"}}
    del seen["extensions"]
    asked = {"provideClusterInfo": True}
    assert plugin_of({}, cluster).spec.cluster is None
    assert plugin_of(asked, cluster).spec.cluster == seen
    for authority in ({"certificate-authority-data": encoded(PEM)}, {"certificate-authority": str(tmp_path / "ca")}):
        spec = plugin_of(asked, {**cluster, **authority}).spec
        assert spec.cluster == {**seen, "certificate-authority-data": encoded(PEM)}
    insecure = {**cluster, "insecure-skip-tls-verify": True}
    assert plugin_of(asked, insecure).spec.cluster == {**seen, "insecure-skip-tls-verify": True}
