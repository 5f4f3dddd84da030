"""The nodes of a cluster with what pods hold on them, for `navarch nodes`.

Nodes and pods are decoded straight into the structs that the scheduler reads, and nothing else is listed. As manifests, 5,000 nodes
are 85,000 dictionaries. To make, to read and to free them took a third of the command's time.
"""

from __future__ import annotations

import asyncio
from typing import TypeVar

import click
import msgspec

from navarch.apis.core.nodes import Node, read_node
from navarch.apis.core.objects import KubeObject, from_manifest
from navarch.apis.core.partial_pod import read_partial_pod
from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Settings
from navarch.apis.errors import ObjectError
from navarch.cli.cluster.leader import Leader
from navarch.cli.cluster.listing import Fetched, Refused, fetched, not_listed
from navarch.cli.cluster.options import ClusterOptions
from navarch.cli.cluster.show import Tell
from navarch.ingest.ingest import Ingest
from navarch.installed import installed
from navarch.kube.client import Client
from navarch.kube.resources import PODS, Resource
from navarch.kube.watch.decoding import shallow
from navarch.views.nodes import NodeRow, node_rows
from navarch.views.running_policy import running_policy

K = TypeVar("K", bound=KubeObject)
NODES = Resource("", "v1", "nodes", namespaced=False)


async def read_nodes(client: Client, options: ClusterOptions, tell: Tell) -> list[NodeRow]:
    """All nodes. Where pods may not be listed, a line says so, and nothing seems to be used."""
    nodes, pods, state = await asyncio.gather(
        fetched(client, [(NODES, "Node")], type=msgspec.Raw),
        fetched(client, [(PODS, "Pod")], type=msgspec.Raw),
        Leader(client, options.state).state(),
    )
    if isinstance(nodes, Refused):
        raise click.ClickException(str(nodes.error))
    # The policy says which nodes are in the pool of the scheduler. Its other rules do not matter to what nodes have and hold.
    running = running_policy(options.policy, state, installed(options.plugin_dirs))
    return rows_of(running.settings(namespace_as_queue=options.namespace_as_queue), nodes, pods, tell)


def rows_of(settings: Settings, nodes: Fetched, pods: Fetched | Refused, tell: Tell) -> list[NodeRow]:
    """The objects are JSON."""
    ingest = Ingest(settings)
    _put_nodes(ingest, nodes, tell)
    if isinstance(pods, Refused):
        tell(not_listed([pods]))
    else:
        _put_pods(ingest, pods, tell)
    return node_rows(ingest.cluster)


def _put_nodes(ingest: Ingest, found: Fetched, tell: Tell) -> None:
    decoder = msgspec.json.Decoder(Node)
    for raw in found.objects:
        try:
            ingest.put(read_node(_read(raw, decoder, found.kind), ingest.settings))
        except ObjectError as error:
            tell(f"left out: {error}")


def _put_pods(ingest: Ingest, found: Fetched, tell: Tell) -> None:
    """A pod that cannot be read still holds what can be read of it."""
    decoder = msgspec.json.Decoder(Pod)
    whole: list[Pod] = []
    unread: list[tuple[bytes | Pod, ObjectError]] = []
    for raw in found.objects:
        try:
            whole.append(_read(raw, decoder, found.kind))
        except ObjectError as error:
            unread.append((bytes(raw), error))
    unread += ingest.put_new_pods(whole)
    for pod, problem in unread:
        half = read_partial_pod(pod, problem)
        tell(f"left out: {problem}" if half is None else f"{problem}; {ingest.put_partial(half)}")


def _read(raw: msgspec.Raw, decoder: msgspec.json.Decoder[K], kind: str) -> K:
    """Raises ObjectError that names the field."""
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = shallow(bytes(raw).decode("utf-8", "replace").encode())
        return from_manifest({"kind": kind, **msgspec.json.decode(text)}, decoder.type)
