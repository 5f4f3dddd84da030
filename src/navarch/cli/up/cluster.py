"""The embedded cluster of `navarch up`: API server, hollow nodes, controllers and the live scheduler in one process.

The scheduler is that of `navarch run`, and it uses the API server over HTTPS like any other.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from navarch.cli.cluster.embedded_kubeconfig import USUAL_KUBECONFIG
from navarch.cli.policy.shard_option import scheduler_of_shard
from navarch.cli.scheduler_names import EMBEDDED
from navarch.cli.up.kubeconfig_file import hold, own_kubeconfig
from navarch.cli.up.queues import ensure_kai_queues
from navarch.cli.up.scheduler_service import SERVICE, serve_scheduler
from navarch.embedded.api.bootstrap import ensure_namespace
from navarch.embedded.api.server import ApiServer
from navarch.embedded.controllers.volumes.provisioning import ensure_standard_class
from navarch.embedded.hollow_cluster import HollowCluster
from navarch.embedded.kubelets.pod_behaviour import KubeletOptions
from navarch.embedded.node_sets import NodeSet, read_nodes
from navarch.embedded.sample.size import FEWEST_SLOTS, Size
from navarch.engine.policy import PRESETS, Policy
from navarch.kube.client import Client
from navarch.kube.connect import Endpoint, connect
from navarch.live.ops.shard_policy import read_shard
from navarch.live.run_options import RunOptions
from navarch.live.scheduler import Scheduler
from navarch.manifests.installation import NAMESPACE
from navarch.model.resources import parse_amount
from navarch.object_types import Manifest

log = logging.getLogger(__name__)
START_AFTER, STOP_AFTER = 0.5, 1.0
PUBLISHED_WITHIN = 10.0
TALKATIVE = 200
"""Up to this many nodes, kubelets write an event for each start and stop."""
PER_RACK, RACKS_PER_ZONE = 4, 4
API_GROUPS = {
    "volcano": "scheduling.volcano.sh",
    "kai": "scheduling.run.ai",
    "kube-batch": "scheduling.incubator.k8s.io",
    "coscheduling": "scheduling.x-k8s.io",
    "kubernetes": "scheduling.k8s.io",
}
"""--dialect -> the API group of its PodGroups and Queues."""


@dataclass(frozen=True)
class UpOptions:
    """The options of `navarch up`."""

    nodes: int = 4
    gpus: int = 8
    node_file: Path | None = None
    data_dir: Path | None = None
    port: int = 0
    kubeconfig: Path | None = None
    sample: bool = True
    speed: float = 1.0
    policy: str = "navarch"
    shard: str = ""
    """KAI's SchedulingShard that is the policy: of the file `policy`, or, if that is no file, of the cluster."""
    plugin_dirs: tuple[Path, ...] = ()
    namespace_as_queue: bool = False
    metrics_names: str = ""
    until_settled: bool = False
    web: bool = False
    """With a dashboard, which asks the scheduler at its endpoint."""
    web_port: int = 0
    dialect: str | None = None
    """The API whose groups and queues `kubectl get podgroup` and `kubectl get queue` mean; None: the policy's."""


class UpCluster:
    """An async context manager; everything runs inside it."""

    def __init__(self, options: UpOptions) -> None:
        self.options = options
        self.server = ApiServer(port=options.port, data_dir=options.data_dir)
        kubelets = KubeletOptions(start_after=START_AFTER, stop_after=STOP_AFTER, events=options.nodes <= TALKATIVE)
        self.hollow = HollowCluster(self.server.operations, speed=options.speed, options=kubelets)
        usual = options.data_dir / "kubeconfig" if options.data_dir is not None else USUAL_KUBECONFIG
        self.kubeconfig = (options.kubeconfig or usual).absolute()
        self.is_second = False
        """Whether another `navarch up` has the usual kubeconfig, so that this one has its own."""
        self._held = contextlib.ExitStack()
        self.scheduler: Scheduler | None = None
        self.scheduling: asyncio.Task[None] | None = None
        self._announcing: asyncio.Task[None] | None = None
        self.dashboard = ""
        """The address of the dashboard with its token, once it is served."""

    async def _announce(self) -> None:
        serve_scheduler(self.server.operations, NAMESPACE, await self.scheduler_port())

    async def scheduler_port(self) -> int:
        """The port of the scheduler's endpoint, once it listens."""
        assert self.scheduler is not None
        while not self.scheduler.operator_server.health.port:
            await asyncio.sleep(0.02)
        return self.scheduler.operator_server.health.port

    async def published(self) -> None:
        """Wait until the scheduler has published its policy, which the dashboard shows; not for ever: it may be unable to."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PUBLISHED_WITHIN):
                while self.server.store.find("configmaps", NAMESPACE, f"{SERVICE}-state") is None:
                    await asyncio.sleep(0.05)

    @property
    def export(self) -> str:
        """The command that sets KUBECONFIG in another terminal, with an absolute path."""
        return f"export KUBECONFIG={shlex.quote(str(self.kubeconfig))}"

    @property
    def policy(self) -> Policy:
        assert self.scheduler is not None
        return self.scheduler.policy_file.policy

    async def __aenter__(self) -> UpCluster:
        await self.server.start()
        try:
            unnamed = self.options.kubeconfig is None and self.options.data_dir is None
            wanted = self.kubeconfig
            self.kubeconfig = own_kubeconfig(wanted, self.server.port, may_rename=unnamed)
            self.is_second = self.kubeconfig != wanted
            self._held.enter_context(hold(self.server.kubeconfig(self.kubeconfig)))
            ensure_standard_class(self.server.operations)
            ensure_namespace(self.server.operations, NAMESPACE)
            self.hollow.start()
            self.hollow.add_nodes(self._nodes())
            endpoint = connect(self.kubeconfig)
            text, names = await self._shard(endpoint)
            options = RunOptions(
                policy=self.options.policy,
                shard=self.options.shard,
                plugin_dirs=self.options.plugin_dirs,
                namespace_as_queue=self.options.namespace_as_queue,
                scheduler_names=names,
                listen="127.0.0.1:0",
                reached_as=f"services/{SERVICE}",
                metrics_names=self.options.metrics_names,
                leader_elect=False,
                lock_namespace=NAMESPACE,
                shutdown_timeout=2.0,
                bind_requests=False,  # the embedded cluster has no KAI binder
                gpu_sharing="annotations",
            )
            self.scheduler = Scheduler(endpoint, options, policy_text=text)
            if self.policy.dialect == "kai":
                ensure_kai_queues(self.server.operations)
            dialect = self.options.dialect or ("kai" if self.policy.dialect == "kai" else "volcano")
            self.server.registry.first_group = API_GROUPS[dialect]
            self.scheduling = asyncio.create_task(self.scheduler.run(), name="scheduler")
            self._announcing = asyncio.create_task(self._announce(), name="scheduler's service")
        except BaseException:  # also Ctrl-C: everything that was started must stop with the command
            await self._stop()
            raise
        return self

    async def _shard(self, endpoint: Endpoint) -> tuple[str | None, tuple[str, ...]]:
        """The text of the policy where it is a SchedulingShard of the cluster, and the scheduler names that are served."""
        given, text = self.options, None
        if not given.shard:
            return None, EMBEDDED
        if given.policy not in PRESETS and not Path(given.policy).exists():
            async with Client(endpoint) as client:
                text = await read_shard(client, given.shard)
        name = scheduler_of_shard(given.policy, text, given.shard, given.plugin_dirs)
        return text, EMBEDDED if name in EMBEDDED else (*EMBEDDED, name)

    async def __aexit__(self, *_: object) -> None:
        await self._stop()

    async def _stop(self) -> None:
        """Stop the scheduler first, then controllers and kubelets, then the server that they write to."""
        if self._announcing is not None:
            self._announcing.cancel()
        if self.scheduler is not None and self.scheduling is not None:
            self.scheduler.stop()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(self.scheduling, return_exceptions=True)
        self.hollow.stop()
        await self.server.stop()
        self._held.close()

    def _nodes(self) -> Iterable[Manifest]:
        if self.options.node_file is not None:
            return read_nodes(self.options.node_file)
        racks = max(1, -(-self.options.nodes // PER_RACK))
        zones = max(1, -(-racks // RACKS_PER_ZONE))
        return NodeSet(count=self.options.nodes, gpus=self.options.gpus, racks=racks, zones=zones).manifests()

    def size(self) -> Size:
        """The size of the sample, from the nodes that the cluster has."""
        records = self.server.store.list("nodes")
        gpus = [int((r.obj["status"].get("allocatable") or {}).get("nvidia.com/gpu", 0)) for r in records]
        with_gpus = [count for count in gpus if count]
        if sum(with_gpus) >= FEWEST_SLOTS:
            return Size.of(len(with_gpus), min(with_gpus), 0)
        processors = [parse_amount("cpu", (r.obj["status"].get("allocatable") or {}).get("cpu", "0")) for r in records]
        return Size.of(len(records), 0, min(processors, default=0))
