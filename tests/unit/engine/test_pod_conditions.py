"""What the condition of a waiting pod says: `Unschedulable` if and only if it would run now if nodes were added."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.worlds.small_cluster import add_job, decided, promises, shape, with_nodes

from navarch.engine.pod_conditions import known_codes, pod_reason
from navarch.engine.policy.presets import PRESETS
from navarch.engine.reasons import RANKED_OR_HELPED
from navarch.model.resources import requests_from
from navarch.model.spec import QueueSpec
from navarch.model.status import TaskStatus
from navarch.offline.plan import plan
from navarch.plugins.gang import Gang
from navarch.plugins.priority import Priority
from navarch.plugins.proportion import Proportion
from navarch.testing.builders import node, pod, pod_group, queue

ROOT = Path(__file__).parents[3]
QUEUES_WITH_LIMITS = ("navarch", "volcano", "kai")
WITHOUT_GANGS = ("kube-scheduler",)
Object = dict[str, Any]


def said(objects: list[Object], policy: Any, cycles: int = 1) -> dict[str, str]:
    """Pod -> the reason of its condition."""
    record = plan(objects, policy, cycles).records[-1]
    return {refusal.pod.partition("/")[2]: refusal.reason for job in record.jobs for refusal in job.refusals}


def counts(objects: list[Object], policy: Any) -> Counter[str]:
    return Counter(said(objects, policy).values())


def queues(policy: str, cpus: int | None = None) -> list[Object]:
    """The queue `default`, with a limit or without."""
    if policy != "kai":
        made = queue("default")
        return [made if cpus is None else made.capability(cpu=str(cpus))]
    free = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    bound = free if cpus is None else {**free, "limit": cpus * 1000}
    kind = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue"}
    top = {**kind, "metadata": {"name": "top"}, "spec": {"resources": {"cpu": free, "memory": free, "gpu": free}}}
    shares = {"cpu": bound, "memory": free, "gpu": free}
    return [top, {**kind, "metadata": {"name": "default"}, "spec": {"parentQueue": "top", "resources": shares}}]


def gang(policy: str, size: int, cpus: int, least: int | None = None, on_queue: str = "default") -> list[Object]:
    least = least or size
    if policy != "kai":
        return [pod_group("g", least).queue(on_queue), *(pod(f"p{i}").cpu(cpus).in_group("g") for i in range(size))]
    meta, spec = {"name": "g", "namespace": "default"}, {"minMember": least, "queue": on_queue}
    group = {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": meta, "spec": spec}
    return [group, *(pod(f"p{i}").cpu(cpus).annotate("pod-group-name", "g") for i in range(size))]


def singles(count: int, cpus: int) -> list[Object]:
    return [pod(f"s{i}").cpu(cpus).label("kai.scheduler/queue", "default") for i in range(count)]


@pytest.mark.parametrize("policy", [name for name in PRESETS if name not in WITHOUT_GANGS])
def test_all_pods_of_a_gang_that_waits_for_room_ask_for_nodes(policy: str) -> None:
    assert counts([node("n").cpu(20), *queues(policy), *gang(policy, 8, 6)], policy) == {"Unschedulable": 8}, "also those with a place"
    assert counts([*queues(policy), *gang(policy, 8, 6)], policy) == {"Unschedulable": 8}, "a cluster without nodes"
    assert counts([node("n").cpu(20), *queues(policy), *gang(policy, 8, 6, least=2)], policy) == {"Unschedulable": 5}


@pytest.mark.parametrize("policy", [name for name in PRESETS if name not in WITHOUT_GANGS])
def test_a_gang_with_too_few_pods_asks_for_no_nodes(policy: str) -> None:
    code = "NotReady" if policy == "kai" else "NotEnoughTasks"
    assert counts([node("n").cpu(20), *queues(policy), *gang(policy, 2, 6, least=3)], policy) == {code: 2}
    gated = gang(policy, 3, 6)
    gated[-1] = gated[-1].gate("example.com/wait")  # type: ignore[attr-defined]
    assert counts([node("n").cpu(20), *queues(policy), *gated], policy) == {code: 2, "SchedulingGated": 1}


@pytest.mark.parametrize("policy", QUEUES_WITH_LIMITS)
@pytest.mark.parametrize("cpus", [0, 1, 20], ids=["without nodes", "with a small node", "with room"])
def test_a_limit_lets_as_many_pods_ask_for_nodes_as_fit_under_it(policy: str, cpus: int) -> None:
    nodes = [node("n").cpu(cpus)] if cpus else []
    asking = 0 if cpus == 20 else 2
    assert counts([*nodes, *queues(policy, 4), *singles(10, 2)], policy) == Counter(Unschedulable=asking, QueueLimit=8)


@pytest.mark.parametrize("policy", QUEUES_WITH_LIMITS)
def test_a_gang_that_no_limit_lets_start_asks_for_no_nodes(policy: str) -> None:
    for nodes in ([], [node("n").cpu(1)], [node("n").cpu(20)]):
        assert counts([*nodes, *queues(policy, 4), *gang(policy, 3, 2)], policy) == {"QueueLimit": 3}
        assert counts([*nodes, *queues(policy, 4), *gang(policy, 3, 2, least=2)], policy)["QueueLimit"] == 1


def test_a_limit_of_a_queue_above_counts_for_all_below_in_job_order() -> None:
    tree = [queue("root"), queue("top").parent("root").capability(cpu="4"), *(queue(name).parent("top") for name in ("a", "b"))]
    first = pod("first").cpu(2).annotate("scheduling.volcano.sh/queue-name", "b").priority(9)
    later = [pod(f"later-{i}").cpu(2).annotate("scheduling.volcano.sh/queue-name", name) for i, name in enumerate("aab")]
    policy = {
        "actions": "allocate",
        "tiers": [{"plugins": [{"name": "priority"}, {"name": "gang"}, {"name": "capacity", "enableHierarchy": True}]}],
    }
    assert said([*tree, first, *later], policy) == {
        "first": "Unschedulable",
        "later-0": "Unschedulable",
        "later-1": "QueueLimit",
        "later-2": "QueueLimit",
    }


@pytest.mark.parametrize("plugin", ["proportion", "capacity"])
def test_the_size_of_the_cluster_is_no_limit_but_what_others_are_guaranteed_is(plugin: str) -> None:
    policy = {
        "actions": "enqueue, allocate",
        "compat": "volcano",
        "tiers": [{"plugins": [{"name": "gang"}, {"name": plugin}]}],
    }
    full = [pod_group("g", 2).min_resources(cpu=12), *(pod(f"p{i}").cpu(6).in_group("g") for i in range(2))]
    for nodes in ([], [node("n").cpu(8)]):
        assert counts([*nodes, queue("default"), *full], policy) == {"Unschedulable": 2}
    kept = queue("kept").guarantee(cpu="6")
    assert "Unschedulable" not in counts([node("n").cpu(8), queue("default"), kept, *full], policy)
    assert counts([queue("default"), kept, *full], policy) == {"Unschedulable": 2}, "the first node comes all the same"


def test_a_held_job_keeps_its_part_of_a_limit_and_its_pods_that_were_told_something_else_have_none() -> None:
    def asking(told: str) -> dict[str, str]:
        cluster = with_nodes(("n", {"cpu": 1}))
        cluster.put_queue(QueueSpec("default", state="Open", capability=requests_from({"cpu": 4})))
        for number in range(4):
            add_job(cluster, f"j{number}", [shape(cpu=2)], created=number)
        for held in ("j0", "j1"):
            before = cluster.task(f"{held}-0")
            assert before is not None
            cluster.put_task(replace(before, conditions=(("PodScheduled", "False", told, 1.0),)))
            cluster.jobs.hold(f"ns/{held}", True)
        record = decided(cluster, Priority, Gang, Proportion)
        return {refusal.uid: refusal.reason for job in record.jobs for refusal in job.refusals}

    for told in ("Unschedulable", "QueueLimit", ""):
        assert asking(told) == {"j2-0": "QueueLimit", "j3-0": "QueueLimit"}
    assert asking("VolumeUnusable") == {"j2-0": "Unschedulable", "j3-0": "Unschedulable"}


def test_only_the_share_is_used_up() -> None:
    """Volcano gives nothing beyond a share; the share grows with the cluster."""
    held = [pod(f"held-{i}").cpu(5).bound_to("n") for i in range(2)]
    assert counts([node("n").cpu(10), queue("default"), *held, *singles(3, 5)], "volcano") == {"Unschedulable": 3}


def test_a_pod_whose_volume_claim_is_missing_asks_for_no_node_and_the_others_of_its_gang_only_if_they_can_start() -> None:
    def world(least: int) -> list[Object]:
        made = gang("navarch", 3, 6, least)
        made[1]["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "none"}}]
        return [node("n").cpu(4), queue("default"), *made]

    for policy in ("navarch", "volcano"):
        assert counts(world(3), policy) == {"VolumeUnusable": 3}
        assert said(world(2), policy) == {"p0": "VolumeUnusable", "p1": "Unschedulable", "p2": "Unschedulable"}


def test_a_pod_that_waits_for_its_victims_has_a_nomination_and_one_that_waits_for_others_asks_for_a_node() -> None:
    def world(**low: Any) -> dict[str, str]:
        cluster = with_nodes(("n", {"cpu": 4}))
        add_job(cluster, "low", [shape(cpu=2)] * 2, node="n", minimum=1)
        for task in ("low-0", "low-1"):
            before = cluster.task(task)
            assert before is not None
            cluster.put_task(replace(before, **low))
        add_job(cluster, "high", [shape(cpu=2)], priority=9)
        record = decided(cluster, Priority, Gang, actions=("allocate", "preempt"))
        assert promises(record) == {"high-0": "n"}
        return {refusal.uid: refusal.reason for job in record.jobs for refusal in job.refusals}

    assert world()["high-0"] == "Schedulable"
    assert world(status=TaskStatus.RELEASING, deleting=True)["high-0"] == "Unschedulable"


@pytest.mark.parametrize(("asks", "reason"), [(True, "Unschedulable"), (False, "NotAdmitted")])
def test_a_policy_may_buy_no_nodes_for_jobs_that_a_full_cluster_does_not_admit(asks: bool, reason: str) -> None:
    overcommit = {"name": "overcommit", "arguments": {"overcommit-asks-for-nodes": asks}}
    policy = {"actions": "enqueue, allocate", "compat": "volcano", "tiers": [{"plugins": [{"name": "gang"}, overcommit]}]}
    group = pod_group("g", 2).min_resources(cpu=12)
    assert counts([node("n").cpu(4), queue("default"), group, *gang("volcano", 2, 6)[1:]], policy) == {reason: 2}


@pytest.mark.parametrize(("asks", "reason"), [(True, "Unschedulable"), (False, "NotReserved")])
def test_a_policy_may_buy_no_nodes_for_pods_that_a_promise_keeps_waiting(asks: bool, reason: str) -> None:
    easy = {"name": "easy-backfill", "arguments": {"asks-for-nodes": asks}}
    policy = {"actions": "allocate", "tiers": [{"plugins": [{"name": "priority"}, {"name": "gang"}, easy, {"name": "predicates"}]}]}
    ends = "navarch.io/expected-duration"
    running = pod("running").cpu(3).bound_to("n").annotate(ends, "1h")
    first, second = pod("first").cpu(4).priority(9).annotate(ends, "1h"), pod("second").cpu(1).annotate(ends, "9h")
    assert said([node("n").cpu(4), queue("default"), running, first, second], policy) == {"first": "Unschedulable", "second": reason}


def test_behind_the_first_job_of_a_queue_in_strict_order() -> None:
    policy = {
        "actions": "allocate",
        "tiers": [{"plugins": [{"name": "priority"}, {"name": "gang"}, {"name": "strict-order"}, {"name": "proportion"}]}],
    }
    first, second = pod("first").cpu(6).priority(9), pod("second").cpu(1)
    assert said([node("n").cpu(4), queue("default"), first, second], policy) == {"first": "Unschedulable", "second": "Unschedulable"}
    limited = queue("default").capability(cpu="4")
    assert said([node("n").cpu(8), limited, first, second], policy) == {"first": "QueueLimit", "second": "QueueLimit"}


def test_a_job_that_a_plugin_of_a_user_refuses_says_the_plugins_code() -> None:
    assert pod_reason("QuietHours") == "QuietHours"
    assert pod_reason("QuietNode", unknown="Unschedulable") == "Unschedulable"
    assert pod_reason("") == "Skipped", "a pod without a reason might buy nodes"


# every code


def test_every_code_has_an_entry() -> None:
    written = dict(_codes_in_source()) | dict.fromkeys(RANKED_OR_HELPED, "engine/reasons.py")
    assert len(written) > 70, "the search finds the codes"
    missing = {code: place for code, place in written.items() if code not in known_codes()}
    assert not missing, "give each an entry in engine/pod_conditions.py and a row in docs/autoscaling.md"


def test_the_page_lists_every_code_and_what_a_pod_says() -> None:
    page = (ROOT / "docs/autoscaling.md").read_text(encoding="utf-8").partition("## Every code")[2]
    told: dict[str, str] = {}
    for codes, says in re.findall(r"^\| (`[^|]+) \| `(\w+)` \|", page, re.MULTILINE):
        told.update(dict.fromkeys(re.findall(r"`(\w+)`", codes), says))
    assert told == {code: pod_reason(code) for code in known_codes()}


def _codes_in_source() -> Iterator[tuple[str, str]]:
    """Codes that are given to refusals as literals or as constants, and where. What `explain` alone says is left out."""
    source = ROOT / "src/navarch"
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(source.rglob("*.py"))}
    everywhere: dict[str, set[str]] = {}
    for tree in trees.values():
        for name, value in _constants(tree):
            everywhere.setdefault(name, set()).add(value)
    for path, tree in trees.items():
        if path.is_relative_to(source / "explanation") or path.is_relative_to(source / "embedded"):
            continue
        local: dict[str, set[str]] = {}
        for name, value in _constants(tree):
            local.setdefault(name, set()).add(value)
        for call in ast.walk(tree):
            for node_ in _code_arguments(call) if isinstance(call, ast.Call) else ():
                if isinstance(node_, ast.Constant) and node_.value:
                    yield str(node_.value), f"{path.name}:{node_.lineno}"
                elif isinstance(node_, ast.Name) and (node_.id in local or node_.id.isupper()):
                    for value in local.get(node_.id) or everywhere.get(node_.id, set()):
                        yield value, f"{path.name}:{node_.lineno}"


def _constants(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Names in capitals, and their texts that look like codes."""
    for each in ast.walk(tree):
        if not isinstance(each, ast.Assign | ast.AnnAssign):
            continue
        for target in each.targets if isinstance(each, ast.Assign) else [each.target]:
            pairs: Iterable[tuple[ast.expr, ast.expr | None]] = [(target, each.value)]
            if isinstance(target, ast.Tuple) and isinstance(each.value, ast.Tuple):
                pairs = zip(target.elts, each.value.elts)
            for name, value in pairs:
                text = value.value if isinstance(value, ast.Constant) else None
                if isinstance(name, ast.Name) and name.id.isupper() and isinstance(text, str) and re.fullmatch(r"[A-Z]\w+", text):
                    yield name.id, text


_POSITION = {"Reason": 0, "Refusal": 3}


def _code_arguments(call: ast.Call) -> Iterator[ast.expr]:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    found: list[ast.expr] = []
    if name in _POSITION:
        found += call.args[_POSITION[name] : _POSITION[name] + 1]
    if name in ("Reason", "Refusal", "Rejection", "HardLimit", "replace"):
        found += [each.value for each in call.keywords if each.arg in ("code", "cause")]
    if name == "Rejection":
        found += [each.value for each in call.keywords if each.arg == "reason"]
    for each in found:
        yield from (each.body, each.orelse) if isinstance(each, ast.IfExp) else (each,)
