"""Kubeconfig files: clusters, users and contexts, read as kubectl does.

Several files are merged: the first entry of a name wins. Paths in a file are relative to that file. A setting that is not supported
(a SOCKS proxy, a removed auth-provider) is an error: ignoring it could use the wrong server or no credentials.
"""

from __future__ import annotations

import base64
import binascii
import logging
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
import yaml

from navarch.kube.auth.credentials import Credentials, StaticCredentials, TokenFileCredentials
from navarch.kube.auth.exec_plugin import API_VERSIONS, ExecCommand, ExecCredentials
from navarch.kube.auth.tls import Source, Tls
from navarch.kube.connect import Endpoint
from navarch.kube.errors import ConfigError

log = logging.getLogger(__name__)

CLUSTER_CONFIG = "client.authentication.k8s.io/exec"
"""The extension of a cluster that is meant for exec plugins."""


class Extension(msgspec.Struct, frozen=True):
    name: str = ""
    extension: Any = None


class KubeconfigCluster(msgspec.Struct, frozen=True, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: list[Extension] | None = None


class ExecEnv(msgspec.Struct, frozen=True):
    name: str
    value: str = ""


class Exec(msgspec.Struct, frozen=True, rename="camel"):
    command: str
    api_version: str = ""
    args: list[str] | None = None
    env: list[ExecEnv] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"


class KubeconfigUser(msgspec.Struct, frozen=True, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    username: str = ""
    password: str = ""
    exec: Exec | None = None
    auth_provider: dict[str, Any] | None = None
    impersonate: str = msgspec.field(name="as", default="")
    impersonate_uid: str = msgspec.field(name="as-uid", default="")
    impersonate_groups: list[str] = msgspec.field(name="as-groups", default_factory=list)
    impersonate_extra: dict[str, list[str]] = msgspec.field(name="as-user-extra", default_factory=dict)


class KubeconfigContext(msgspec.Struct, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


Section = TypeVar("Section", KubeconfigCluster, KubeconfigUser, KubeconfigContext)


class Merged:
    """All named entries of the given files, each with the directory of its relative paths."""

    def __init__(self) -> None:
        self.current_context = ""
        self.clusters: dict[str, tuple[KubeconfigCluster, Path]] = {}
        self.users: dict[str, tuple[KubeconfigUser, Path]] = {}
        self.contexts: dict[str, tuple[KubeconfigContext, Path]] = {}

    def add_file(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                document = yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except OSError as error:
            raise ConfigError(f"kubeconfig {path}: {error.strerror or error}") from error
        except yaml.YAMLError as error:
            raise ConfigError(f"kubeconfig {path}: expected YAML: {error}") from error
        if document is None:
            return
        if not isinstance(document, Mapping):
            raise ConfigError(f"kubeconfig {path}: expected a mapping, found {type(document).__name__}")
        self.current_context = self.current_context or str(document.get("current-context") or "")
        self._read(path, document, "clusters", "cluster", KubeconfigCluster, self.clusters)
        self._read(path, document, "users", "user", KubeconfigUser, self.users)
        self._read(path, document, "contexts", "context", KubeconfigContext, self.contexts)

    @staticmethod
    def _read(
        path: Path,
        document: Mapping[str, Any],
        plural: str,
        singular: str,
        kind: type[Section],
        into: dict[str, tuple[Section, Path]],
    ) -> None:
        entries = document.get(plural) or []
        if not isinstance(entries, list):
            raise ConfigError(f"kubeconfig {path}: {plural}: expected a list, found {type(entries).__name__}")
        for position, entry in enumerate(entries):
            if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
                # Without values: a token may be among them.
                found = sorted(map(str, entry)) if isinstance(entry, Mapping) else type(entry).__name__
                raise ConfigError(f"kubeconfig {path}: {plural}[{position}].name: expected a name, found {found}")
            given = entry.get(singular) or {}
            if not isinstance(given, Mapping):
                raise ConfigError(f"kubeconfig {path}: {singular} {entry['name']!r}: expected a mapping, found {type(given).__name__}")
            body = {name: value for name, value in given.items() if value is not None}
            try:
                section = msgspec.convert(body, kind)
            except msgspec.ValidationError as error:
                raise ConfigError(f"kubeconfig {path}: {singular} {entry['name']!r}: {error}") from error
            into.setdefault(entry["name"], (section, path.parent))


def load_kubeconfig(paths: Sequence[Path], *, context: str | None = None, environ: Mapping[str, str] = os.environ) -> Endpoint:
    """The endpoint of the named context, or of the current one."""
    merged = Merged()
    existing = [path for path in paths if path.exists()]
    if not existing:
        raise ConfigError(f"kubeconfig {', '.join(map(str, paths))}: no such file")
    for path in existing:
        merged.add_file(path)
    where = ", ".join(map(str, existing))
    name = context or merged.current_context
    if not name:
        raise ConfigError(f"kubeconfig {where}: current-context: expected a context's name, found nothing")
    chosen, _ = _named(merged.contexts, name, "context", where)
    cluster, cluster_folder = _named(merged.clusters, chosen.cluster, "cluster", where)
    user, user_folder = _named(merged.users, chosen.user, "user", where) if chosen.user else (KubeconfigUser(), Path())
    if not cluster.server:
        raise ConfigError(f"kubeconfig {where}: cluster {chosen.cluster!r}: server: expected a URL, found nothing")
    user_label = f"kubeconfig {where}: user {chosen.user!r}"
    tls = _tls(cluster, cluster_folder, user, user_folder, user_label)
    endpoint = Endpoint(
        server=cluster.server,
        tls=tls,
        credentials=_credentials(user, user_folder, cluster, cluster_folder, tls, user_label),
        namespace=chosen.namespace or "default",
        headers=_impersonation(user),
        tls_server_name=cluster.tls_server_name or None,
    )
    return endpoint.through_proxy(environ, cluster.proxy_url, f"kubeconfig {where}: cluster {chosen.cluster!r}: proxy-url")


def _named(entries: Mapping[str, tuple[Section, Path]], name: str, kind: str, where: str) -> tuple[Section, Path]:
    if name not in entries:
        raise ConfigError(f"kubeconfig {where}: {kind} {name!r} is not there; found {sorted(entries)}")
    return entries[name]


def _decoded(value: str, field: str) -> bytes:
    try:
        # Long values are often folded; kubectl ignores the line breaks.
        return base64.b64decode(value.replace("\r", "").replace("\n", ""), validate=True)
    except binascii.Error as error:
        raise ConfigError(f"{field}: expected base64: {error}") from error


def _tls(cluster: KubeconfigCluster, cluster_folder: Path, user: KubeconfigUser, user_folder: Path, user_label: str) -> Tls | None:
    certificate = _pem(user.client_certificate, user.client_certificate_data, user_folder, f"{user_label}: client-certificate-data")
    key = _pem(user.client_key, user.client_key_data, user_folder, f"{user_label}: client-key-data")
    if (certificate is None) != (key is None):
        raise ConfigError(f"{user_label}: expected client-certificate and client-key together, found one of them")
    if not cluster.server.startswith("https://"):
        return None
    authority = _pem(cluster.certificate_authority, cluster.certificate_authority_data, cluster_folder, "certificate-authority-data")
    return Tls(authority=authority, certificate=certificate, key=key, insecure=cluster.insecure_skip_tls_verify)


def _pem(file: str, data: str, folder: Path, field: str) -> Source | None:
    """Data wins over a file, as it does for kubectl."""
    return _decoded(data, field) if data else folder / file if file else None


def _credentials(
    user: KubeconfigUser, folder: Path, cluster: KubeconfigCluster, cluster_folder: Path, tls: Tls | None, where: str
) -> Credentials:
    # kubectl's order: a token file wins over an inline token, those over a password, those over exec.
    if user.token_file:
        return TokenFileCredentials(folder / user.token_file)
    if user.token:
        return StaticCredentials.token(user.token)
    if user.username or user.password:
        return StaticCredentials.password(user.username, user.password)
    if user.exec is not None:
        return ExecCredentials(_exec_command(user.exec, folder, cluster, cluster_folder, where), tls)
    if user.auth_provider is not None:
        name = user.auth_provider.get("name", "")
        raise ConfigError(f"{where}: auth-provider {name!r} was removed from Kubernetes in 1.26; expected exec")
    return StaticCredentials()


def _exec_command(spec: Exec, folder: Path, cluster: KubeconfigCluster, cluster_folder: Path, where: str) -> ExecCommand:
    if spec.api_version not in API_VERSIONS:
        raise ConfigError(f"{where}: exec.apiVersion: expected one of {list(API_VERSIONS)}, found {spec.api_version!r}")
    if spec.interactive_mode == "Always":
        raise ConfigError(f"{where}: exec.interactiveMode Always needs a terminal; a scheduler has none")
    command = spec.command
    if "/" in command and not Path(command).is_absolute():
        command = str((folder / command).absolute())
    elif "/" not in command:
        command = shutil.which(command) or command
    info: dict[str, object] | None = None
    if spec.provide_cluster_info:
        info = {"server": cluster.server}
        if cluster.certificate_authority_data:
            info["certificate-authority-data"] = cluster.certificate_authority_data
        elif cluster.certificate_authority:
            authority = (cluster_folder / cluster.certificate_authority).read_bytes()
            info["certificate-authority-data"] = base64.b64encode(authority).decode()
        if cluster.insecure_skip_tls_verify:
            info["insecure-skip-tls-verify"] = True
        if cluster.tls_server_name:
            info["tls-server-name"] = cluster.tls_server_name
        if cluster.proxy_url:
            info["proxy-url"] = cluster.proxy_url
        for each in cluster.extensions or ():
            if each.name == CLUSTER_CONFIG:
                info["config"] = each.extension
    return ExecCommand(
        command=command,
        args=tuple(spec.args or ()),
        env={entry.name: entry.value for entry in spec.env or ()},
        api_version=spec.api_version,
        install_hint=spec.install_hint,
        cluster=info,
    )


def _impersonation(user: KubeconfigUser) -> list[tuple[str, str]]:
    headers = [("Impersonate-Group", group) for group in user.impersonate_groups]
    if user.impersonate_uid:
        headers.append(("Impersonate-Uid", user.impersonate_uid))
    for key, values in user.impersonate_extra.items():
        headers += [(f"Impersonate-Extra-{quote(key, safe='')}", value) for value in values]
    if headers and not user.impersonate:
        raise ConfigError("as-groups, as-uid, as-user-extra: expected `as` beside them")
    return [("Impersonate-User", user.impersonate), *headers] if user.impersonate else []
