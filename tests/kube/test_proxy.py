"""Which proxy is meant: the kubeconfig's, the environment's or none; read as kubectl reads it, and never told with its password."""

from __future__ import annotations

import base64
import copy
import io
import logging
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console
from rich.pretty import Pretty
from tests.envtest.certificates import Authority

from navarch.kube.auth.incluster import load_in_cluster
from navarch.kube.auth.kubeconfig import load_kubeconfig
from navarch.kube.connect import Endpoint, connect
from navarch.kube.errors import ConfigError
from navarch.kube.proxy import Proxy, choose_proxy, is_exempt

# (NO_PROXY, host, port, exempt): what Go 1.26's http.ProxyFromEnvironment answered to each.
NO_PROXY = [
    ("", "api.corp.example", 6443, False),
    ("", "localhost", 6443, True),
    ("", "127.0.0.1", 6443, True),
    ("", "127.9.9.9", 6443, True),
    ("", "::1", 6443, True),
    ("", "::ffff:127.0.0.1", 6443, True),
    ("", "localhost.example", 6443, False),
    ("", "0.0.0.0", 6443, False),
    ("*", "api.corp.example", 6443, True),
    ("a.example, * ,b.example", "10.0.0.1", 443, True),
    ("corp.example", "corp.example", 443, True),
    ("corp.example", "api.corp.example", 443, True),
    ("corp.example", "mycorp.example", 443, False),
    ("corp.example", "corp.example.org", 443, False),
    (".corp.example", "api.corp.example", 443, True),
    (".corp.example", "corp.example", 443, False),
    ("*.corp.example", "a.b.corp.example", 443, True),
    ("*.corp.example", "corp.example", 443, False),
    ("*corp.example", "api.corp.example", 443, False),
    ("*corp.example", "corp.example", 443, False),
    (" CORP.Example ", "api.corp.example", 443, True),
    ("x.example,,corp.example", "api.corp.example", 443, True),
    ("x.example corp.example", "corp.example", 443, False),
    ("corp.example:6443", "api.corp.example", 6443, True),
    ("corp.example:6443", "api.corp.example", 443, False),
    ("corp.example:", "api.corp.example", 6443, True),
    (".corp.example:6443", "api.corp.example", 6443, True),
    ("*.corp.example:443", "api.corp.example", 6443, False),
    (":6443", "api.corp.example", 6443, False),
    ("10.0.0.1", "10.0.0.1", 443, True),
    ("10.0.0.1", "10.0.0.10", 443, False),
    ("10.0.0.1:6443", "10.0.0.1", 6443, True),
    ("10.0.0.1:6443", "10.0.0.1", 443, False),
    ("10.0.0.1", "::ffff:10.0.0.1", 443, True),
    ("0.0.1", "10.0.0.1", 443, False),
    (".1", "10.0.0.1", 443, False),
    ("10.0.0.0/8", "10.96.0.1", 443, True),
    ("10.96.0.1/12", "10.111.0.9", 443, True),
    ("10.0.0.0/8", "11.0.0.1", 443, False),
    ("10.0.0.0/255.0.0.0", "10.96.0.1", 443, False),
    ("10.0.0.0/33", "10.0.0.0", 443, False),
    ("10.0.0.0/8:443", "10.96.0.1", 443, False),
    ("10.0.0.0/8", "api.corp.example", 443, False),
    ("fd00::/8", "fd00::1", 443, True),
    ("fd00::/8", "fe80::1", 443, False),
    ("fd00::1", "fd00:0:0::1", 443, True),
    ("fd00::1", "fd00::2", 443, False),
    ("[fd00::1]:6443", "fd00::1", 6443, True),
    ("[fd00::1]:6443", "fd00::1", 443, False),
    ("[fd00::1]", "fd00::1", 443, False),
    ("a:b:c", "a", 443, False),
]


@pytest.mark.parametrize(("no_proxy", "host", "port", "exempt"), NO_PROXY)
def test_hosts_that_need_no_proxy(no_proxy: str, host: str, port: int, exempt: bool) -> None:
    assert is_exempt(host, port, no_proxy) is exempt
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    environ = {"HTTPS_PROXY": "http://p:3128", "NO_PROXY": no_proxy}
    assert choose_proxy(server, environ) == (None if exempt else Proxy("http", "p", 3128))


@pytest.mark.parametrize(
    ("server", "environ", "expected"),
    [
        ("https://api", {}, None),
        ("https://api", {"HTTPS_PROXY": "http://p:3128"}, "http://p:3128"),
        ("https://api", {"https_proxy": "http://p:3128"}, "http://p:3128"),
        ("https://api", {"HTTPS_PROXY": "http://upper", "https_proxy": "http://lower"}, "http://upper:80"),
        ("https://api", {"HTTPS_PROXY": "", "https_proxy": "http://lower"}, "http://lower:80"),
        ("https://api", {"HTTP_PROXY": "http://p", "http_proxy": "http://p", "ALL_PROXY": "http://p"}, None),
        ("http://api", {"HTTPS_PROXY": "http://p"}, None),
        ("http://api", {"HTTP_PROXY": "https://p"}, "https://p:443"),
        ("https://api", {"HTTPS_PROXY": "p.example:3128"}, "http://p.example:3128"),
        ("https://api", {"HTTPS_PROXY": "10.0.0.1:3128"}, "http://10.0.0.1:3128"),
        ("https://api", {"HTTPS_PROXY": "p.example"}, "http://p.example:80"),
        ("https://api", {"HTTPS_PROXY": "HTTP://P.Example:3128/"}, "http://p.example:3128"),
        ("https://api", {"HTTPS_PROXY": "http://[fd00::1]:3128"}, "http://[fd00::1]:3128"),
        ("https://api:6443", {"HTTPS_PROXY": "http://p", "no_proxy": "api:6443"}, None),
        ("https://api", {"HTTPS_PROXY": "http://p", "NO_PROXY": "api:443"}, None),
        ("http://api", {"HTTP_PROXY": "http://p", "NO_PROXY": "api:80"}, None),
        ("https://localhost:6443", {"HTTPS_PROXY": "socks5://not:looked@at"}, None),
    ],
)
def test_proxies_of_the_environment(server: str, environ: dict[str, str], expected: str | None) -> None:
    chosen = choose_proxy(server, environ)
    assert (str(chosen) if chosen else None) == expected


@pytest.mark.parametrize(
    ("url", "account"),
    [
        ("http://p:1", ""),
        ("http://me:word@p:1", "me:word"),
        ("http://me@p:1", "me:"),
        ("http://me:@p:1", "me:"),
        ("http://:word@p:1", ":word"),
        ("http://do%40main%5Cme:p%3Aq%2F%25@p:1", "do@main\\me:p:q/%"),
        ("http://zo%C3%AB:caff%C3%A8@p:1", "zoë:caffè"),
    ],
)
def test_the_account_in_a_url(url: str, account: str) -> None:
    expected = "Basic " + base64.b64encode(account.encode()).decode() if account else ""
    assert Proxy.parse(url, "test").authorization == expected


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("socks5://me:hush@p:1080", "found socks5://"),
        ("socks5h://me:hush@p", "found socks5h://"),
        ("ftp://p", "found ftp://"),
        ("p.example:3128", "found no scheme"),
        ("http://", "found no host"),
        ("http://:3128", "found no host"),
        ("http://me:hush@", "found no host"),
        ("http://me:hush@p:notaport", "found what is no URL"),
        ("http://me:hush@p:99999", "found what is no URL"),
        ("http://me:hush@[fd00::1", "found what is no URL"),
        ("http://me:hu/sh@p:3128", "found what is no URL"),
        ("http://me:12/hush@p:3128", "special characters"),
        ("http://me:12#hush@p:3128", "special characters"),
        ("http://me:12?hush@p:3128", "special characters"),
    ],
)
def test_an_unusable_proxy_is_refused_without_its_password(tmp_path: Path, url: str, found: str) -> None:
    with pytest.raises(ConfigError) as by_file:
        load_kubeconfig([config(tmp_path, {"server": "https://api", "proxy-url": url})], environ={})
    assert "hush" not in "".join(traceback.format_exception(by_file.value))
    said = [str(by_file.value).removeprefix(f"kubeconfig {tmp_path / 'config'}: ")]
    assert said[0].startswith("cluster 'c': proxy-url: expected http://")
    if "://" in url:  # the environment may leave the scheme out
        with pytest.raises(ConfigError) as by_environment:
            choose_proxy("https://api", {"HTTPS_PROXY": url})
        said.append(str(by_environment.value))
        assert said[1].startswith("HTTPS_PROXY: expected http://")
    for each in said:
        assert "or the same with https://" in each and found in each and "hu" not in each and "me:" not in each


def config(folder: Path, cluster: dict[str, Any], user: dict[str, Any] | None = None) -> Path:
    document = {
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def test_a_proxy_url_wins_over_the_environment(tmp_path: Path) -> None:
    environ = {"HTTPS_PROXY": "http://theirs", "NO_PROXY": "*"}
    path = config(tmp_path, {"server": "https://127.0.0.1:6443", "proxy-url": "https://mine"})
    assert load_kubeconfig([path], environ=environ).proxy == Proxy("https", "mine", 443)
    path = config(tmp_path, {"server": "https://api:6443"})
    assert load_kubeconfig([path], environ=environ).proxy is None
    assert load_kubeconfig([path], environ={"HTTPS_PROXY": "http://theirs"}).proxy == Proxy("http", "theirs", 80)


def test_connect_reads_the_environment_of_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    path = config(tmp_path, {"server": "https://api:6443"})
    assert connect(path).proxy is None
    monkeypatch.setenv("https_proxy", "http://p:3128")
    assert connect(path).proxy == Proxy("http", "p", 3128)
    assert connect(config(tmp_path, {"server": "https://127.0.0.1:6443"})).proxy is None


async def test_an_exec_plugin_that_asks_for_its_cluster_is_told_the_proxy(tmp_path: Path) -> None:
    """It has to get through as well."""
    program = """
import json, os
cluster = json.loads(os.environ["KUBERNETES_EXEC_INFO"])["spec"]["cluster"]
status = {"token": cluster["proxy-url"]}
print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}))
"""
    command = {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": ["-c", program]}
    url = "http://me:word@p:3128"
    path = config(tmp_path, {"server": "https://api", "proxy-url": url}, {"exec": {**command, "provideClusterInfo": True}})
    assert await connect(path).credentials.authorization() == f"Bearer {url}"


def test_a_pod_reads_its_environment(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t", encoding="utf-8")
    Authority(tmp_path)  # whose certificate is ca.crt
    environ = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "HTTPS_PROXY": "http://p:3128"}
    assert load_in_cluster(tmp_path, environ).proxy == Proxy("http", "p", 3128)
    assert load_in_cluster(tmp_path, {**environ, "NO_PROXY": "10.96.0.0/12"}).proxy is None


def test_no_text_of_an_endpoint_holds_the_account(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    found = Endpoint("http://api").through_proxy({"HTTP_PROXY": "http://an-account:hush@proxy.example:3128"})
    assert found.proxy is not None and found.proxy.authorization == "Basic YW4tYWNjb3VudDpodXNo"
    page = Console(file=io.StringIO(), width=200)
    page.print(Pretty(found), Pretty(found.proxy))
    assert isinstance(page.file, io.StringIO)
    texts = (
        repr(found),
        str(found),
        str(found.proxy),
        f"{found.proxy!r}",
        repr(copy.copy(found.proxy)),
        page.file.getvalue(),
        caplog.text,
    )
    for each in texts:
        assert "proxy.example" in each
        assert "hush" not in each and "an-account" not in each and "YW4t" not in each
    assert "http://api is reached through the proxy http://proxy.example:3128 (HTTP_PROXY)" in caplog.text


def test_an_entry_without_a_name_is_not_told_with_what_it_holds(tmp_path: Path) -> None:
    """It may be a token, or the account of a proxy."""
    path = tmp_path / "config"
    for section, body in (("clusters", {"cluster": {"proxy-url": "http://me:hush@p"}}), ("users", {"user": {"token": "hush"}})):
        path.write_text(yaml.safe_dump({section: [body]}), encoding="utf-8")
        with pytest.raises(ConfigError, match=rf"{section}\[0\]\.name: expected a name") as refused:
            load_kubeconfig([path])
        assert "hush" not in str(refused.value)
    path.write_text("users: [hush]", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"users\[0\]\.name: expected a name, found str"):
        load_kubeconfig([path])


@pytest.mark.parametrize("server", ["https://api:port", "https://[fd00::1", "https://api:70000", "https://api:0"])
def test_a_server_that_is_no_url_is_refused(tmp_path: Path, server: str) -> None:
    with pytest.raises(ConfigError, match="server: expected an http:// or https:// URL"):
        connect(config(tmp_path, {"server": server}))
