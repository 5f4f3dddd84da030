"""What is decided for many inputs under every preset, as four digests a record: placements, evictions, statuses and words.

Inputs are recorded cases of followed systems (`tests/parity/recorded.py`), random worlds, and slices of traces in the
simulator. A recorded case is also decided under its own policy, and under that policy without its `compat`. The instructions of
random histories of the live core are digested too. Timings are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple
from zlib import crc32

import msgspec
from tests.parity.kai_session import policy_document
from tests.parity.recorded import PROJECT, Case, cases_in, parity_root
from tests.parity.volcano_judge import policy_of
from tests.worlds import explained_mixed_clusters, explained_shaped_clusters
from tests.worlds.live_parts.faulty_cluster import FaultyCluster, random_history

import navarch
from navarch.engine.policy import PolicyError
from navarch.engine.policy.presets import PRESETS
from navarch.offline.plan import cycle_dict
from navarch.simulator.simulate import simulate
from navarch.simulator.traces import read_trace

PARTS = ("placements", "evictions", "statuses", "words")
Parts = tuple[Any, Any, Any, Any]
Document = dict[str, Any]


class Input(NamedTuple):
    name: str
    objects: list[Document]
    own: str | Document = ""
    """The policy that the input was made for."""
    metrics: Mapping[str, Any] | None = None
    now: str | None = None


class Frozen(NamedTuple):
    """One case of a record, which is a policy over the inputs of one source."""

    policy: str
    source: str
    case: str
    parts: Parts


def frozen(every: int) -> Iterator[Frozen]:
    """`every`: each policy is given one of so many inputs, and each another one."""
    for source, inputs in sources():
        for number, policy in enumerate([*PRESETS, "own", "own, strict"]):
            for given in inputs:
                if (crc32(given.name.encode()) + number) % every:
                    continue  # by name, so that a case more or less moves no other
                chosen = policy if policy in PRESETS else given.own if policy == "own" else _strict(given.own)
                if chosen:
                    yield Frozen(policy, source, given.name, decided(given, chosen))
    yield from _simulated()
    yield from _live()


# inputs


def sources() -> Iterator[tuple[str, list[Input]]]:
    fresh = PROJECT / "tests" / "parity"
    yield "volcano fresh clusters", [_volcano(case) for case in cases_in(fresh / "volcano_fresh_clusters.jsonl")]
    yield "kai fresh clusters", [_kai(case) for case in cases_in(fresh / "kai_fresh_clusters.jsonl")]
    yield "random worlds", [_random(seed) for seed in range(200)]
    for system, read in (("volcano", _volcano), ("volcano-plugins", _volcano), ("kai", _kai), ("kube-scheduler", _kube_scheduler)):
        for file in sorted((parity_root() / system).glob("*.jsonl")):
            if file.stem not in ("extender-protocol", "probes"):
                inputs = [read(case) for case in cases_in(file) if "objects" in case and case.get("conf", {}).get("tiers", True)]
                yield f"{system} {file.stem}", inputs


def _volcano(case: Case) -> Input:
    return Input(case["name"], case["objects"], policy_of(case), case.get("inputs", {}).get("nodeUsage", {}))


def _kai(case: Case) -> Input:
    return Input(case["name"], case["objects"], policy_document(case) if "conf" in case else "kai", now=case["now"])


def _kube_scheduler(case: Case) -> Input:
    nodes = [{"apiVersion": "v1", "kind": "Node", **each} for each in case.get("nodes", ())]
    pods = [{"apiVersion": "v1", "kind": "Pod", **each} for each in (*case.get("existingPods", ()), *filter(None, [case.get("pod")]))]
    return Input(case["name"], [*nodes, *case["objects"], *pods])


def _random(seed: int) -> Input:
    if seed % 2:
        world = explained_shaped_clusters.World(seed)
        return Input(f"shaped {seed}", world.objects, world.policy)
    mixed = explained_mixed_clusters.World(seed, ("navarch", "volcano", "kai")[seed % 3])
    return Input(f"mixed {seed}", mixed.objects, mixed.policy)


def _strict(policy: str | Document) -> Document:
    return {key: value for key, value in policy.items() if key != "compat"} if isinstance(policy, dict) and "compat" in policy else {}


# what is decided


def decided(given: Input, policy: str | Document) -> Parts:
    try:
        plan = navarch.plan(given.objects, policy=policy, now=given.now, keep_going=True, metrics=given.metrics)
    except (PolicyError, ValueError) as error:
        return [], [], [], [str(error)]
    cycle = cycle_dict(1, plan.records[0])
    placements = [cycle["binds"], cycle["nominations"], plan.records[0].claims, plan.records[0].releases]
    evictions = [{key: value for key, value in each.items() if key != "reason"} for each in cycle["evictions"]]
    words: list[Any] = [*plan.warnings, *map(str, plan.mistakes), *(each["reason"] for each in cycle["evictions"])]
    statuses: list[Any] = [cycle["queues"]]
    for job in cycle["jobs"]:
        words += [each.pop("message") for each in (*job["conditions"], *job["reasons"])]
        words += [reason.pop("nodes") for reason in job["reasons"]]
        statuses.append(job)
    return placements, evictions, statuses, words


def _simulated() -> Iterator[Frozen]:
    traces = parity_root().parent / "traces"
    openb = f"openb:{traces / 'openb' / 'openb_pod_list_default.csv'}"
    slices = (
        ("philly", f"philly:{traces / 'philly' / 'philly.csv'}", "a=2x8gpu", 40),
        ("openb", openb, f"openb:{traces / 'openb' / 'openb_node_list_gpu_node.csv'}", 25),
    )
    for name, trace, cluster, jobs in slices:
        if traces.exists():
            first = list(read_trace(trace).jobs)[:jobs]
            for policy in PRESETS:
                run = simulate(first, cluster, [policy]).runs[0]
                found = run.measures
                placed = [list(found.names), list(found.completion), list(found.queueing), found.placements]
                yield Frozen(policy, f"simulated {name}", "", (placed, found.preemptions, run.waiting, run.remarks()))


def _live() -> Iterator[Frozen]:
    for seed in range(20):
        yield Frozen("live core", "random histories", str(seed), _traced(random_history(seed)))


def _traced(cluster: FaultyCluster) -> Parts:
    cluster.finish()
    placed: list[str] = []
    evicted: list[str] = []
    refused: list[str] = []
    rest: list[str] = []
    lists = {
        **dict.fromkeys(("BindPod", "EndBind", "NominateNode"), placed),
        **dict.fromkeys(("EvictPod", "AbandonEviction"), evicted),
        **dict.fromkeys(("WriteRefusal", "WriteRefusals"), refused),
    }
    for text in cluster.instructions:
        lists.get(text.partition("(")[0], rest).append(text)
    return placed, evicted, rest, refused


def digests(cases: Iterable[Frozen], *, each: bool = False) -> dict[str, str]:
    """`policy | source` -> the four digests of all its cases. `each`: of each case apart."""
    running: dict[str, list[Any]] = {}
    for policy, source, case, parts in cases:
        name = " | ".join((policy, source, case) if each else (policy, source))
        sums = running.setdefault(name, [blake2b(digest_size=4) for _ in PARTS])
        for digest, part in zip(sums, parts):
            digest.update(msgspec.json.encode(part, order="sorted"))
    return {name: " ".join(digest.hexdigest() for digest in sums) for name, sums in running.items()}
