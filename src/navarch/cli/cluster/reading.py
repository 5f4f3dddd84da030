"""A cluster of any API server as an overview: list its objects, fill the model, make rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import click

from navarch.apis.core.pod_objects import Pod
from navarch.cli.cluster.leader import Leader
from navarch.cli.cluster.listing import Listed, listed
from navarch.cli.cluster.options import ClusterOptions
from navarch.cli.cluster.show import Tell
from navarch.cli.cluster.start_estimate import StartEstimate
from navarch.cli.cluster.workloads import workloads
from navarch.cli.scheduler_names import served
from navarch.engine.policy import Policy
from navarch.engine.reasons import NEVER
from navarch.engine.registry import Registry
from navarch.installed import installed
from navarch.kube.client import Client
from navarch.kube.connect import Endpoint
from navarch.live.usage.usage_over_time import UsageOverTime
from navarch.model.cluster import Cluster
from navarch.model.spec import JobSpec, QueueSpec
from navarch.offline.inventory import Inventory
from navarch.views.jobs import JobRow
from navarch.views.overview import Overview, overview
from navarch.views.prospects import Prospect
from navarch.views.published_state import PublishedState, WaitingPage
from navarch.views.queues import with_published_shares
from navarch.views.running_policy import running_policy
from navarch.views.workloads import IN_ROWS, owners_of_pods, with_unreadable, with_workloads

UNSEEN = "?"
"""The queue of a job whose group may not be listed."""


@dataclass
class OverviewReading:
    """Reads jobs and queues of a cluster again and again."""

    options: ClusterOptions
    needs: Sequence[str]
    """Kinds without which there is nothing to show."""
    scheduler_names: Sequence[str] = ()
    namespace: Callable[[Endpoint], str | None] | None = None
    """For jobs: the namespace to list, or None for all."""
    published: Callable[[PublishedState], Overview] | None = None
    """What can be shown to a user who may not list the cluster: that which the scheduler publishes."""
    estimate: StartEstimate | None = None
    """For jobs: with start times."""
    leader: Leader | None = None

    async def __call__(self, client: Client, endpoint: Endpoint, tell: Tell) -> Overview:
        options = self.options
        leader = self.leader = self.leader or Leader(client, options.state)
        namespace = self.namespace(endpoint) if self.namespace else None
        found = await listed(client, namespace)
        for each in found.refused:
            if each.kind in self.needs:
                if self.published is not None and (state := await leader.state()) is not None:
                    tell(f"{each.plural} may not be listed: these are the figures that the scheduler published at {state.time}")
                    return self.published(state)
                hint = "; -n NAMESPACE shows one where they may be listed" if self.namespace and namespace is None else ""
                raise click.ClickException(f"{each.error}{hint}")
        if found.refused and not self.namespace:
            tell(found.told())
        unseen = found.unseen if self.namespace else frozenset()
        state = await leader.state()
        waiting = await leader.waiting() if self.namespace is not None and (state is not None or options.state.url) else None
        found.workloads = await workloads(client, namespace) if self.namespace is not None else []
        return await overview_of(
            found,
            options.policy,
            installed(options.plugin_dirs),
            tell,
            self.scheduler_names,
            options.namespace_as_queue,
            unseen,
            state,
            waiting,
            self.estimate,
        )


async def read_overview(
    client: Client,
    policy_name: str | None,
    registry: Registry,
    tell: Tell,
    scheduler_names: Sequence[str] = (),
    namespace_as_queue: bool = False,
) -> Overview:
    """The whole cluster, for a user who may list all of it."""
    return await overview_of(await listed(client), policy_name, registry, tell, scheduler_names, namespace_as_queue)


async def overview_of(
    found: Listed,
    policy_name: str | None,
    registry: Registry,
    tell: Tell,
    scheduler_names: Sequence[str] = (),
    namespace_as_queue: bool = False,
    unseen: frozenset[str] = frozenset(),
    state: PublishedState | None = None,
    waiting: WaitingPage | None = None,
    estimate: StartEstimate | None = None,
) -> Overview:
    """`unseen`: kinds that may exist although they could not be listed. `state`, `waiting`: what the running scheduler publishes.
    Without a name the policy is the scheduler's. `estimate`: with start times of jobs."""
    running = running_policy(policy_name, state, registry)
    for note in running.notes:
        tell(note)
    policy = running.policy
    inventory = Inventory(found.documents, running.settings(namespace_as_queue=namespace_as_queue))
    for mistake in inventory.mistakes:
        if mistake.kind not in IN_ROWS:
            tell(f"left out: {mistake}")
    cluster = inventory.cluster
    if _assume_unseen(cluster, unseen):
        tell(found.told("PodGroup"))
    await _put_usage(policy, cluster, tell)
    pods = {(pod.metadata.namespace or "default", pod.metadata.name): pod for pod in inventory.pods.values()}
    names = scheduler_names or running.scheduler_names
    ours = served(names, (each.manifest for each in found.documents if each.manifest.get("kind") == "Node"))

    def find_pod(namespace: str, name: str) -> Pod | None:
        return pods.get((namespace, name))

    shown = overview(cluster, policy, registry, time.time(), find_pod, ours)
    manifests = [each.manifest for each in found.documents]
    rows = with_workloads(shown.jobs, (each for _, each in found.workloads), ours, owners_of_pods(manifests))
    shown = replace(shown, jobs=with_unreadable(rows, inventory.mistakes, manifests))
    if estimate is not None:
        if found.complete:
            jobs = [manifest for manifest, _ in found.workloads]
            shown = replace(shown, jobs=estimate.rows(shown.jobs, cluster, policy, registry, time.time(), jobs))
            for reason in sorted({row.start_unknown for row in shown.jobs if row.start_unknown}):
                tell(f"START ?: {reason}")
        else:
            tell("start times need the pods of all namespaces: -A shows them to users who may list these")
    if state is not None and running.shares_are_published:
        shown = replace(shown, queues=with_published_shares(shown.queues, state))
    if waiting is not None:
        return replace(shown, jobs=_as_waiting(shown.jobs, waiting))
    if not found.complete or running.is_another:  # the others that wait were not all seen, or another policy decides their order
        return replace(shown, jobs=[replace(row, prospect=None) for row in shown.jobs])
    return shown


def _as_waiting(rows: Sequence[JobRow], page: WaitingPage) -> list[JobRow]:
    """With the places and the reasons of the scheduler itself."""
    known = {each.key: each for each in page.jobs}
    found = []
    for row in rows:
        job = known.get(row.key)
        if job is None:
            found.append(replace(row, prospect=None))
            continue
        never = job.reason.message if job.reason is not None and job.reason.code == NEVER else ""
        why = row.why if job.reason is None else job.reason.message
        messages = row.messages if job.reason is None else f"{why.rstrip('.')}; {job.reason.next}" if job.reason.next else why
        found.append(replace(row, prospect=Prospect(job.place, job.of, never), why=why, messages=messages))
    return found


def _assume_unseen(cluster: Cluster, unseen: frozenset[str]) -> bool:
    """Assume that groups and queues exist which may not be listed: a row must not say that they do not. True: a group was assumed."""
    groups = [key for key, row in cluster.jobs.rows.of.items() if cluster.jobs.specs[row] is None] if "PodGroup" in unseen else []
    for key in groups:
        cluster.put_job(JobSpec(key, UNSEEN, min_member=0))
    for spec in cluster.jobs.specs:
        if spec is not None and spec.queue not in cluster.queues and (spec.queue == UNSEEN or "Queue" in unseen):
            cluster.put_queue(QueueSpec(spec.queue))
    return bool(groups)


async def _put_usage(policy: Policy, cluster: Cluster, tell: Tell) -> None:
    """What queues held over time, if the policy names a Prometheus server. A history that the scheduler keeps for itself cannot be
    read from here."""
    if policy.usage.get("clientType") != "prometheus":
        return
    usage = UsageOverTime(time.time)
    await usage.open(policy.usage)
    try:
        usage.put_into(cluster)
        if usage.problem():
            tell(usage.problem())
    finally:
        await usage.close()
