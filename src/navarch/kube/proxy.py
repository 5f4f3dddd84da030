"""The proxy for connections to the API server, chosen as kubectl and client-go do, without I/O.

`proxy-url` of the cluster in the kubeconfig holds for that cluster, whatever its address. Without it the environment counts, by the
rules of Go's `ProxyFromEnvironment`: HTTPS_PROXY for an https:// server and HTTP_PROXY for an http:// server, upper case before lower
case, not for localhost and loopback addresses, and not for hosts that NO_PROXY names.

Go ignores a variable that it cannot parse and connects directly. Here that is an error. Its message never contains the value, which
may hold a password.
"""

from __future__ import annotations

import base64
import ipaddress
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from navarch.kube.errors import ConfigError

log = logging.getLogger(__name__)

SUPPORTED = "expected http://[USER:PASSWORD@]HOST[:PORT] or the same with https://"
_PORTS = {"http": 80, "https": 443}
_WITH_PORT = re.compile(r"(?:\[(?P<address>[^\[\]]+)\]|(?P<host>[^:\[\]]*)):(?P<port>[^:]*)")
"""HOST:PORT or [ADDRESS]:PORT in NO_PROXY. With more colons it is an IPv6 address or not valid."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True)
class Proxy:
    """A proxy for tunnels. Its text form has no user and no password.

    >>> Proxy.parse("http://me:secret@proxy.example:3128", "HTTPS_PROXY")
    Proxy(scheme='http', host='proxy.example', port=3128)
    """

    scheme: str
    host: str
    port: int
    authorization: str = field(default="", repr=False)
    """The value of `Proxy-Authorization`; empty for none."""

    def __str__(self) -> str:
        return f"{self.scheme}://{authority(self.host, self.port)}"

    @classmethod
    def parse(cls, url: str, where: str) -> Proxy:
        """Parse the URL of a proxy; `where` names the variable or field that has it."""
        try:
            parts = urlsplit(url.strip())
            host, port = parts.hostname, parts.port
        except ValueError:  # its text may contain a part of the password
            raise ConfigError(
                f"{where}: {SUPPORTED}, found what is no URL; special characters of a password are written as %XX"
            ) from None
        if parts.scheme not in _PORTS:
            scheme = f"{parts.scheme}://" if "://" in url else "no scheme"
            raise ConfigError(f"{where}: {SUPPORTED}, found {scheme}")
        if not host:
            raise ConfigError(f"{where}: {SUPPORTED}, found no host")
        if "@" in parts.path + parts.query + parts.fragment:
            raise ConfigError(f"{where}: {SUPPORTED}, with special characters of user and password written as %XX")
        authorization = ""
        if parts.username is not None:
            account = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            authorization = "Basic " + base64.b64encode(account.encode()).decode()
        return cls(parts.scheme, host, port or _PORTS[parts.scheme], authorization)


def authority(host: str, port: int) -> str:
    """HOST:PORT as in URLs and CONNECT."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def choose_proxy(server: str, environ: Mapping[str, str], configured: str = "", where: str = "proxy-url") -> Proxy | None:
    """The proxy for the API server at this URL: the `configured` one, or that of the environment."""
    if configured:
        chosen = Proxy.parse(configured, where)
    else:
        parts = urlsplit(server)
        where = f"{parts.scheme.upper()}_PROXY"
        value = _variable(environ, where).strip()
        if not value or is_exempt(parts.hostname or "", parts.port or _PORTS[parts.scheme], _variable(environ, "NO_PROXY")):
            return None
        chosen = Proxy.parse(value if "://" in value else f"http://{value}", where)
    log.info("%s is reached through the proxy %s (%s)", server, chosen, where)
    return chosen


def _variable(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name) or environ.get(name.lower(), "")


def is_exempt(host: str, port: int, no_proxy: str) -> bool:
    """Whether connections to this host use no proxy: it is this machine, or NO_PROXY names it.

    >>> is_exempt("api.corp.example", 6443, "10.0.0.0/8, .corp.example")
    True
    """
    host = host.lower()
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    entries = [entry.strip().lower() for entry in no_proxy.split(",")]
    return "*" in entries or any(_names(entry, host, address, port) for entry in entries if entry)


def _names(entry: str, host: str, address: Address | None, port: int) -> bool:
    """Whether one entry of NO_PROXY matches this host: a network, an address, or the end of a name."""
    first, slash, length = entry.partition("/")
    if slash and length.isdecimal() and _address(first) is not None:
        return address is not None and _in_network(address, entry)
    split = _WITH_PORT.fullmatch(entry)
    if split is not None:
        entry = split["address"] or split["host"]
        if not entry or split["port"] not in ("", str(port)):
            return False
    exempt = _address(entry)
    if exempt is not None or address is not None:
        return exempt == address
    if entry.startswith("*."):
        entry = entry[1:]
    return host.endswith(entry) if entry.startswith(".") else host == entry or host.endswith(f".{entry}")


def _in_network(address: Address, entry: str) -> bool:
    try:
        return address in ipaddress.ip_network(entry, strict=False)
    except ValueError:  # a prefix longer than its addresses
        return False


def _address(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
