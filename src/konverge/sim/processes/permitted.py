"""What a container may ask of its rule, and what is refused: a pod must not choose the code that runs on this machine.

A rule names a command. Whoever may create pods could still bring code of their own: files where the command looks for
modules or plugins, variables that loaders and interpreters read, arguments, commands of probes and hooks. All of that
is refused unless the rule allows it; only a rule with `container_command: replace` lets a pod run anything anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from konverge.objects.kinds.core_v1 import Container
from konverge.sim.processes.disk import TERMINATION_LOG, clean, within
from konverge.sim.processes.isolation import View
from konverge.sim.processes.rules import ProcessRule

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"

LOADERS = (
    # where programs and their files are looked for
    "PATH", "HOME", "XDG_*", "KUBECONFIG", "DOCKER_CONFIG", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE",
    "TMPDIR",
    # the system's loader and library
    "LD_*", "DYLD_*", "GLIBC_TUNABLES", "GCONV_PATH", "LOCPATH", "NLSPATH", "MALLOC_*", "HOSTALIASES", "RES_OPTIONS",
    "OPENSSL_*", "SSLKEYLOGFILE", "LIBMYSQL_*", "ODBC*", "KRB5_CONFIG",
    # shells, and what starts other programs
    "IFS", "ENV", "BASH_*", "BASHOPTS", "SHELLOPTS", "SHELL", "CDPATH", "PS4", "PROMPT_COMMAND", "ZDOTDIR", "EDITOR",
    "VISUAL", "PAGER", "MANPAGER", "BROWSER", "LESS*", "VIMINIT", "GIT_*", "SSH_*",
    # interpreters and runtimes
    "PYTHON*", "PERL*", "RUBY*", "GEM_*", "BUNDLE_*", "NODE_*", "NPM_CONFIG_*", "npm_config_*", "LUA_*", "PHPRC",
    "PHP_*", "R_*", "TCLLIBPATH", "GUILE_*", "ERL_*", "ELIXIR_*", "DOTNET_*", "COMPlus_*", "CORECLR_*", "MONO_*",
    "ASPNETCORE_*",
    "JAVA_HOME", "JRE_HOME", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "JAVA_OPT", "JAVA_OPTS",
    "JAVA_OPTIONS", "JVM_OPTS", "CLASSPATH", "CATALINA_*", "MAVEN_*", "GRADLE_*",
    "LOADER_*", "SPRING_*", "LOGGING_CONFIG",
)  # fmt: skip
"""Patterns of the variables with which a program can be made to run other code. No such list is ever complete."""


class Refused(Exception):
    """The rule does not allow what the container asks for; the text names the rule's member to change."""


def check_spec(spec: Container, rule: ProcessRule) -> None:
    """Raises Refused."""
    if rule.runs_anything:
        return
    for mount in spec.volume_mounts:
        _check_path("volumeMount", mount.mount_path, rule)
    if clean(spec.termination_message_path or TERMINATION_LOG) != TERMINATION_LOG:
        _check_path("terminationMessagePath", spec.termination_message_path or "", rule)
    if spec.working_dir and not rule.workdir:
        _check_workdir(spec, rule)
    if spec.args and rule.container_args == "refuse":
        raise _refusal("args", "say what becomes of them with `container_args` (append or ignore)", rule)
    if not rule.container_exec:
        for what in _commands(spec):
            raise _refusal(f"the command of its {what}", "allow it with `container_exec: true`", rule)


def _check_path(what: str, path: str, rule: ProcessRule) -> None:
    wanted = clean(path)
    allowed = (*rule.mounts, *rule.named_mounts())
    if wanted != SERVICE_ACCOUNT and not any(
        within(wanted, pattern) or fnmatchcase(wanted, pattern) for pattern in allowed
    ):
        raise _refusal(f"{what} {path}", f"allow it with {wanted} in `mounts`", rule)


def _check_workdir(spec: Container, rule: ProcessRule) -> None:
    """Programs look for code where they start: `python -m` for modules, a JVM for its settings.

    So there must be no mount above that folder or in it. `/` is where a process starts anyway.
    """
    wanted = clean(spec.working_dir or "")
    mounts = [mount.mount_path for mount in spec.volume_mounts]
    for mount in (*mounts, spec.termination_message_path or TERMINATION_LOG):
        if within(wanted, mount) or (wanted != "/" and within(mount, wanted)):
            to_do = f"say where it starts with `workdir` ({{mount:{wanted}}} is that place)"
            raise _refusal(f"workingDir {spec.working_dir} with the mount {mount}", to_do, rule)


def _commands(spec: Container) -> Iterator[str]:
    probes = {"startupProbe": spec.startup_probe, "readinessProbe": spec.readiness_probe}
    for name, probe in {**probes, "livenessProbe": spec.liveness_probe}.items():
        if probe is not None and probe.exec is not None:
            yield name
    if spec.lifecycle is not None:
        for name, hook in (("postStart hook", spec.lifecycle.post_start), ("preStop hook", spec.lifecycle.pre_stop)):
            if hook is not None and hook.exec is not None:
                yield name


def check_env(env: Mapping[str, str], before: Mapping[str, str], rule: ProcessRule) -> None:
    """`before` is what the process has without its container. Raises Refused."""
    if rule.runs_anything:
        return
    for name in sorted(env):
        if env[name] == before.get(name) or name in rule.env:  # the rule's own value wins
            continue
        if any(fnmatchcase(name, loader) for loader in LOADERS) and not any(
            fnmatchcase(name, allowed) for allowed in rule.container_env
        ):
            raise _refusal(f"the variable {name}", f"allow it with {name} in `container_env`", rule)


def check_host_path(folder: Path, ours: Iterable[Path], rule: ProcessRule) -> None:
    """A folder of this machine is for the containers whose own rule names it, unless it is ours. Raises Refused."""
    if not any(map(folder.is_relative_to, ours)) and not is_host_path_allowed(folder, rule.host_paths):
        raise _refusal(f"hostPath {folder}", "allow it with the folder in `host_paths`", rule)


def is_host_path_allowed(folder: Path, host_paths: Sequence[str]) -> bool:
    return any(folder.is_relative_to(Path(host_path).resolve()) for host_path in host_paths)


def check_files(command: Sequence[str], view: View, rule: ProcessRule) -> None:
    """The files that a rule's own command names must be seen by its process. Raises Refused."""
    for word in command:
        if word.startswith("/") and Path(word).exists() and view.hides(word):
            hidden = Path(word).resolve()
            raise _refusal(f"{word}, which is hidden,", f"show {hidden.parent} with `files`", rule)


def _refusal(what: str, to_do: str, rule: ProcessRule) -> Refused:
    return Refused(f"{what} is not allowed by the process rule for image {rule.image!r}: {to_do}")
