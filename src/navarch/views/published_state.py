"""The state that a running scheduler publishes, and how clients read it.

The leader keeps a ConfigMap `navarch-state` in its namespace, which every authenticated user may read: the policy without credentials,
its hash, parameters, the scheduler names that it serves, and the shares of queues. `navarch jobs`, `queues`, `nodes`, `explain` and
the dashboard read it, so they use the policy that runs. The order of waiting jobs and the reasons name jobs of every tenant and can be
large: they are only at the leader's endpoint (/state/waiting, /state/cycles, /state/decisions, /state/usage), for callers that may
read it (`leader_pages.py`).

    state = await read_state(client, StateAddress.parse(""))       # None: no scheduler publishes here
    policy = load(state.policy.document, registry.catalogue(), state.policy.name)
    waiting = await LeaderPages(client, StateAddress.parse("")).read(WaitingPage)
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar

import msgspec
import yaml
from msgspec import Struct, field

from navarch.engine.policy import Policy
from navarch.engine.policy.credentials import without_credentials
from navarch.kube.auth.tls import Tls
from navarch.kube.client import Client
from navarch.kube.connect import Endpoint
from navarch.kube.errors import ConfigError, Forbidden, NotFound
from navarch.kube.resources import Resource
from navarch.manifests.installation import NAME, NAMESPACE

CONFIG_MAPS: Final = Resource("", "v1", "configmaps")
STATE_KEY, POLICY_KEY = "state.json", "policy.yaml"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
P = TypeVar("P", bound=Struct)


class PublishedPolicy(Struct, frozen=True, rename="camel"):
    """`name` is the preset or the file. `document` is the decoded file without credentials; equal documents have equal hashes."""

    name: str
    hash: str
    dialect: str
    compat: str
    document: dict[str, Any] = field(default_factory=dict)


class QueueShare(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Amounts as Kubernetes writes quantities."""

    queue: str
    share: float
    deserved: dict[str, str] = field(default_factory=dict)
    allocated: dict[str, str] = field(default_factory=dict)
    request: dict[str, str] = field(default_factory=dict)
    fair_share: dict[str, str] | None = None
    waiting: int = 0
    """Jobs of the queue itself with pods that wait, and with pods on nodes."""
    running: int = 0


class Parameters(Struct, frozen=True, rename="camel"):
    """Options of `navarch run` that change how objects are read or what may be decided."""

    namespace_as_queue: bool = False
    node_pool_label_key: str = ""
    partition_label_value: str = ""
    gpu_sharing: str = ""
    dry_run: bool = False


class ProxiedEndpoint(Struct, frozen=True, rename="camel"):
    """Where the API server's proxy finds the leader's endpoint: a pod or a Service in the namespace of the config map."""

    resource: str
    """`pods` or `services`"""
    name: str
    port: int
    scheme: str = "http"


class PublishedState(Struct, frozen=True, rename="camel"):
    version: str
    scheduler_names: list[str]
    policy: PublishedPolicy
    parameters: Parameters
    queues: list[QueueShare]
    leader: str
    time: str
    """When this was written, RFC 3339. It is written only when something else in it changed."""
    queues_left_out: int = 0
    endpoint: ProxiedEndpoint | None = None
    """None: the API server cannot reach the leader."""


class Cause(Struct, frozen=True, rename="camel"):
    """`message` is the dominant reason in one line, `next` what helps."""

    code: str
    message: str
    next: str = ""


class LastTried(Struct, frozen=True, rename="camel"):
    """In which cycle room was last looked for on behalf of the job, and as which job of that cycle."""

    cycle: int
    place: int
    time: str


class WaitingJob(Struct, frozen=True, rename="camel"):
    """`place` of `of` jobs that wait in its queue; `overall` of all that wait. `key` tells two jobs of one name apart."""

    job: str
    key: str
    queue: str
    place: int
    of: int
    overall: int
    pods: int
    min_member: int
    priority: int
    state: str
    """`active`: the next cycle tries it. `held`: it waits for an event or for the end of its back-off."""
    reason: Cause | None = None
    since: str | None = None
    """Since when the reason has this code."""
    last_tried: LastTried | None = None


class WaitingPage(Struct, frozen=True, rename="camel"):
    """/state/waiting: the jobs that wait, in the order in which the policy tries them."""

    time: str
    cycle: int
    jobs: list[WaitingJob]


class CycleSummary(Struct, frozen=True, rename="camel"):
    """`parts`: seconds of snapshot, open, each action, each plugin's opening and closing, close, commit."""

    cycle: int
    id: str
    time: str
    seconds: float
    parts: dict[str, float]
    tried: int
    bound: int
    evicted: int
    nominated: int
    waiting: int
    failures: int


class CyclesPage(Struct, frozen=True, rename="camel"):
    """/state/cycles: the last cycles, newest first."""

    cycles: list[CycleSummary]


class Decided(Struct, frozen=True, rename="camel", omit_defaults=True):
    """`kind` is bind, eviction or nomination. `for` is the job that gets the resources of an eviction."""

    kind: str
    cycle: int
    time: str
    pod: str
    node: str
    job: str
    for_: str = field(default="", name="for")
    action: str = ""
    message: str = ""


class DecisionsPage(Struct, frozen=True, rename="camel"):
    """/state/decisions: the last decisions, newest first."""

    decisions: list[Decided]


class HeldOverTime(Struct, frozen=True, rename="camel"):
    """`held`: one amount a step, the newest last; None: not known."""

    queue: str
    resource: str
    held: list[float | None]


class UsagePage(Struct, frozen=True, rename="camel"):
    """/state/usage: what queues held in the last hour, in steps of `seconds`; `end` is the end of the newest step."""

    seconds: int
    end: float
    rows: list[HeldOverTime]


PAGES: Final[Mapping[type[Struct], str]] = {
    PublishedState: "/state",
    WaitingPage: "/state/waiting",
    CyclesPage: "/state/cycles",
    DecisionsPage: "/state/decisions",
    UsagePage: "/state/usage",
}


def published_policy(policy: Policy) -> PublishedPolicy:
    document = without_credentials(policy.document)
    return PublishedPolicy(policy.source, document_hash(document), policy.dialect, policy.compat, document)


def document_hash(document: Mapping[str, Any]) -> str:
    """Of the document without credentials; comments and the order of fields do not count."""
    plain = msgspec.json.encode(without_credentials(document), enc_hook=str, order="deterministic")
    return hashlib.sha256(plain).hexdigest()[:16]


def to_config_map(state: PublishedState) -> dict[str, str]:
    """The data of the ConfigMap: two texts that people can read."""
    plain: dict[str, Any] = msgspec.to_builtins(state)
    document = plain["policy"].pop("document")
    return {
        STATE_KEY: msgspec.json.format(msgspec.json.encode(plain), indent=1).decode(),
        POLICY_KEY: yaml.safe_dump(_plain(document), sort_keys=False, width=120),
    }


def from_config_map(data: Mapping[str, str]) -> PublishedState:
    """Raises ValueError where the texts are not what a scheduler publishes."""
    plain = msgspec.json.decode(data.get(STATE_KEY) or "{}")
    document = yaml.safe_load(data.get(POLICY_KEY) or "{}")
    if isinstance(plain, dict) and isinstance(plain.get("policy"), dict):
        plain["policy"]["document"] = document
    return msgspec.convert(plain, PublishedState)


@dataclass(frozen=True)
class StateAddress:
    """Where a scheduler publishes: a ConfigMap, or the `url` of its endpoint. An empty namespace: look in the usual ones."""

    namespace: str = ""
    name: str = f"{NAME}-state"
    url: str = ""

    @property
    def key_name(self) -> str:
        """The Secret with the key for the pages of the leader's endpoint."""
        return f"{self.name.removesuffix('-state')}-pages"

    @classmethod
    def parse(cls, text: str) -> Self:
        """
        >>> StateAddress.parse("batch/gpu"), StateAddress.parse("http://localhost:8080/").url
        (StateAddress(namespace='batch', name='gpu-state', url=''), 'http://localhost:8080')
        """
        if "://" in text:
            return cls(url=text.rstrip("/"))
        namespace, _, name = text.rpartition("/")
        return cls(namespace, f"{name}-state") if name else cls()


async def read_state(client: Client, address: StateAddress) -> PublishedState | None:
    """What the scheduler publishes; None if there is none, or if it may not be read. A ConfigMap that is not a scheduler's: None."""
    if address.url:
        return await read_page(client.endpoint, address.url, PublishedState)
    found = await find_state(client, address)
    return None if found is None else found[1]


async def find_state(client: Client, address: StateAddress) -> tuple[str, PublishedState] | None:
    """The namespace of the ConfigMap, and what it says."""
    usual = dict.fromkeys((NAMESPACE, client.endpoint.namespace, "default"))
    for namespace in (address.namespace,) if address.namespace else usual:
        try:
            found = await client.get(CONFIG_MAPS, address.name, namespace=namespace)
            return namespace, from_config_map(found.get("data") or {})
        except (NotFound, Forbidden, ValueError, yaml.YAMLError):
            continue
    return None


async def read_page(endpoint: Endpoint, url: str, page: type[P]) -> P:
    """A page of the scheduler's endpoint (see `read_bytes`)."""
    return msgspec.json.decode(await read_bytes(endpoint, url, PAGES[page]), type=page)


async def read_bytes(endpoint: Endpoint, url: str, path: str) -> bytes:
    """What the scheduler's endpoint has at a path. The bearer token of `endpoint` is sent over https alone: a caller on the
    scheduler's own machine (a port forward) needs none, and over plain http anyone on the way would read it."""
    secure = url.startswith("https://")
    address = Endpoint(url, tls=Tls() if secure else None)
    if address.host not in _LOOPBACK:
        if not secure:
            raise ConfigError(f"{url}: expected https, or a port forward to localhost: the page needs a bearer token")
        address = Endpoint(url, tls=Tls(), credentials=endpoint.credentials)
    async with Client(address, attempts=1) as client:
        return await client.transport.request("GET", path)


def _plain(value: Any) -> Any:
    match value:
        case Mapping():
            return {str(key): _plain(each) for key, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case str() | int() | float() | bool() | None:
            return value
    return str(value)
