"""A live core on an API server in memory where everything may fail: bindings, watches, evictions, the scheduler itself.

`FaultyCluster` has a method for each thing that can happen, and `check` for what must hold after each of them. `finish` stops the
faults, lets time pass, and checks what must hold then. Hypothesis chooses what happens (tests/properties/test_live_core.py), or a
seed does (`random_history`).
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import TypeVar, cast

import msgspec
from tests.worlds.live_parts.memory_api import EPOCH, ApiPod, MemoryApi

from navarch.apis.dialect import Settings
from navarch.engine.cycle import decide
from navarch.engine.policy import Policy, load
from navarch.installed import installed
from navarch.kube.errors import Conflict, Forbidden, KubeError, NotFound, OutcomeUnknown, ServerFault, Status, Unreachable
from navarch.kube.write.http1 import Reply
from navarch.kube.write.pool import Done, Write, WritePool
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.core import LiveCore
from navarch.live.instructions import BindPod, EndBind, EvictPod, Instruction
from navarch.live.writers.binder import Binder
from navarch.model.spec import TaskSpec

T = TypeVar("T")
REGISTRY = installed()
POLICY = load(
    {
        "compat": "volcano",
        "actions": "allocate, backfill",
        "tiers": [{"plugins": [{"name": "priority"}, {"name": "gang"}, {"name": "predicates"}]}],
    },
    REGISTRY.catalogue(),
    "small",
)
SETTINGS = Settings(scheduler_names=frozenset({"navarch"}))
GANG_TIMEOUT = 10.0
QUIET = (1.0, 10.0, 10.0, 1.0, 20.0, 20.0, 1.0, 20.0, 20.0, 1.0, 20.0)
"""Seconds between cycles at the end, without faults: several times the longest back-off, the gang time-out, and the time-out of an
eviction that was answered falsely."""
FAULTS = ("", "", "", "refused", "unreachable", "unknown", "server error")
PAUSES = (0.0, 0.1, 1.0, 3.0, 11.0)


class Sent:
    """A binding in flight. `applied`: what the API server did: "ok", "missing" or "conflict"; empty: nothing yet."""

    def __init__(self, write: Write, done: Done) -> None:
        body = msgspec.json.decode(write.body)
        self.name, self.uid, self.node = body["metadata"]["name"], body["metadata"]["uid"], body["target"]["name"]
        self.done = done
        self.applied = ""


class FaultyCluster:
    """Arguments called `choice` pick one of however many there are."""

    def __init__(self, cpus: Iterable[int], policy: Policy = POLICY) -> None:
        self.now = 100.0
        self._policy = policy
        self.api = MemoryApi(SETTINGS, lambda: self.now)
        self._serial = 0
        self._complete: set[str] = set()
        """Groups that had enough pods on nodes at some time."""
        self._applied: set[str] = set()
        """uids of pods that we bound."""
        self.instructions: list[str] = []
        """Everything that the core ever told the shell to do, as text: what an instruction holds changes later."""
        for number, cpu in enumerate(cpus):
            self.api.add_node(f"n{number}", cpu)
        self._start_scheduler()

    def _start_scheduler(self) -> None:
        """A new process: it knows what a list shows, and nothing else."""
        self.sent: list[Sent] = []
        self.asked: list[AssumedBind] = []
        self.evicted: list[TaskSpec] = []
        self._started: set[str] = set()
        """Groups without a pod on a node that this leader began to bind."""
        self._bound: dict[int, AssumedBind] = {}
        """Binds that have not ended."""
        self.core = LiveCore(SETTINGS, self._carry_out, gang_timeout=GANG_TIMEOUT)
        self.binder = Binder(cast(WritePool, self), self.core, self, clock=lambda: self.now)
        self.api.list_all(self.core)
        self.core.start_leading(self.now)

    # what the core is connected to

    def _carry_out(self, instruction: Instruction) -> None:
        self.instructions.append(repr(instruction))
        match instruction:
            case BindPod(bind=bind):
                self._bound[id(bind)] = bind
                group = bind.job.partition("/")[2]
                if not any(pod.holds and pod.group == group for pod in self.api.pods.values()):
                    self._started.add(group)
                self.binder.bind(bind)
            case EndBind(bind=bind):
                assert self._bound.pop(id(bind), None) is bind, f"the bind of {bind.name} ended twice"
            case EvictPod(task=task):
                self.evicted.append(task)

    def submit(self, write: Write, done: Done) -> None:
        """As the write pool."""
        sent = Sent(write, done)
        assert sent.uid not in self._applied, f"{sent.name} was bound already"
        assert all(each.uid != sent.uid for each in self.sent), f"{sent.name} is being bound already"
        self.sent.append(sent)

    def ask(self, bind: AssumedBind, delay: float) -> None:
        """As the resync."""
        self.asked.append(bind)

    # users, controllers and kubelets

    def create_pod(self, cpu: int) -> None:
        self._serial += 1
        self.api.add_pod(f"p{self._serial}", cpu)

    def create_gang(self, size: int, spare: int, cpu: int) -> None:
        self._serial += 1
        name = f"g{self._serial}"
        self.api.add_group(name, size)
        for member in range(size + spare):
            self.api.add_pod(f"{name}-{member}", cpu, name)

    def delete_pod(self, choice: int, again: bool) -> None:
        """`again`: its controller creates another of the same name."""
        pod = pick(self.api.pods.values(), choice)
        self.api.delete_pod(pod.name)
        if again:
            self.api.add_pod(pod.name, pod.cpu, pod.group)

    @property
    def waiting_members(self) -> list[ApiPod]:
        """Pods without a node of groups that have pods on nodes."""
        begun = {pod.group for pod in self.on_nodes if pod.group}
        return [pod for pod in self.api.pods.values() if not pod.node and pod.group in begun]

    def delete_waiting_member(self, choice: int) -> None:
        """Its group may have too few pods from then on."""
        self.api.delete_pod(pick(self.waiting_members, choice).name)

    @property
    def on_nodes(self) -> list[ApiPod]:
        return [pod for pod in self.api.pods.values() if pod.holds]

    def set_phase(self, choice: int, phase: str) -> None:
        self.api.set_phase(pick(self.on_nodes, choice).name, phase)

    def add_node(self, cpu: int) -> None:
        self.api.add_node(f"n{len(self.api.nodes)}", cpu)

    # watches

    def deliver(self, choice: int, latest: bool) -> None:
        self.api.deliver(self.core, pick(self.api.unseen, choice), latest=latest)

    def deliver_all(self) -> None:
        self.api.deliver_all(self.core)

    # the scheduler

    def cycle(self, seconds: float) -> None:
        self.now += seconds
        self.core.queue.flush_backoff(self.now)
        self.core.commit(self.core.decide(self._policy, REGISTRY, EPOCH + self.now).record, self.now)

    def check_gangs(self) -> None:
        self.core.check_gangs(self.now)
        self.core.check_promises(self.now)

    # bindings and evictions

    @property
    def unapplied(self) -> list[Sent]:
        return [each for each in self.sent if not each.applied]

    def apply(self, choice: int) -> None:
        """The API server carries a binding out. Its answer is still on the way, and may be lost."""
        self._apply(pick(self.unapplied, choice))

    def _apply(self, sent: Sent) -> None:
        sent.applied = self.api.bind(sent.name, sent.uid, sent.node)
        if sent.applied == "ok":
            self._applied.add(sent.uid)
            self._note_complete(self.api.pods[sent.name].group)

    def _note_complete(self, name: str) -> None:
        group = self.api.groups.get(name)
        # A pod that failed a moment ago was started too. The watch may not have shown its end when the last member was bound.
        on_nodes = [pod for pod in self.api.pods.values() if pod.group == name and pod.node]
        if group is not None and len(on_nodes) >= group.min_member:
            self._complete.add(name)

    def set_congested(self, congested: bool) -> None:
        """While the API server is slow, binds wait in the outbox."""
        if congested or not self.core.leading:
            self.binder.outbox.pause()
        else:
            self.binder.outbox.resume()

    def answer(self, choice: int, fault: str) -> None:
        """A binding ends. One that was applied cannot be refused. One that was not is refused, lost, or applied at this moment."""
        sent = pick(self.sent, choice)
        self.sent.remove(sent)
        if not fault and not sent.applied:
            self._apply(sent)
        sent.done(_outcome(sent, fault))

    def resolve(self, choice: int) -> None:
        """The resync asks the API server about a binding with an unknown outcome."""
        bind = pick(self.asked, choice)
        self.asked.remove(bind)
        self.core.resolve_bind(bind, self.api.get(bind.name), self.now)

    def answer_eviction_falsely(self, choice: int) -> None:
        """The evictor is told that the eviction was accepted, and nothing follows."""
        task = pick(self.evicted, choice)
        self.evicted.remove(task)
        self.core.assumed.accept_eviction(task.uid)

    def end_eviction(self, choice: int, carried_out: bool, again: bool) -> None:
        """An eviction is carried out, or given up because of a disruption budget. `again`: see `delete_pod`."""
        task = pick(self.evicted, choice)
        self.evicted.remove(task)
        if carried_out:
            self._evict(task, again)
        else:
            self._give_up_eviction(task)

    def _evict(self, task: TaskSpec, again: bool) -> None:
        pod = self.api.pods.get(task.name)
        if pod is not None and pod.uid == task.uid:
            self.api.delete_pod(pod.name)
            if again:
                self.api.add_pod(pod.name, pod.cpu, pod.group)

    def _give_up_eviction(self, task: TaskSpec) -> None:
        """As the evictor."""
        self.core.assumed.end_eviction(task.uid)
        self.core.cache.refresh(task.uid)

    # faults of the scheduler itself

    def crash(self, applied: bool) -> None:
        """The process is killed. What it sent is applied by the API server, or is lost."""
        for sent in self.sent:
            if applied and not sent.applied:
                self._apply(sent)
        self._start_scheduler()

    def lose_lease(self) -> None:
        self.core.stop_leading()
        self._started.clear()
        self.binder.outbox.pause()
        for task in self.evicted:
            self._give_up_eviction(task)
        self.evicted.clear()

    def other_leader_binds(self, choice: int) -> None:
        """Another scheduler leads and binds a single pod where it fits beside what we have sent."""
        sent = {each.uid for each in self.sent}
        pending = [pod for pod in self.api.pods.values() if not pod.node and not pod.group and pod.uid not in sent]
        if pending:
            pod = pick(pending, choice)
            node = next((node for node in self.api.nodes.values() if self._load(node.name) + pod.cpu <= node.cpu), None)
            if node is not None:
                self.api.bind(pod.name, pod.uid, node.name)

    def regain_lease(self) -> None:
        """By then the watch has shown what the other leader did."""
        self.api.deliver_all(self.core)
        self.now += 15.0
        self.core.start_leading(self.now)
        self.binder.outbox.resume()

    # what holds

    def _load(self, node: str) -> int:
        """What is bound to the node, and what is being bound to it."""
        coming = {each.uid for each in self.unapplied if each.node == node}
        return self.api.used(node) + sum(pod.cpu for pod in self.api.pods.values() if pod.uid in coming and not pod.node)

    def check(self) -> None:
        for node in self.api.nodes.values():
            assert self._load(node.name) <= node.cpu, f"{node.name} is over-committed"

    def finish(self) -> None:
        """No more faults: everything is answered and shown, and time passes."""
        if not self.core.leading:
            self.regain_lease()
        self.set_congested(False)
        for seconds in QUIET:
            self._answer_everything()
            self.check_gangs()
            self.cycle(seconds)
            self.check()
        self._answer_everything()
        assert not self.core.assumed.binds and not self.core.assumed.evictions, "an assumption is left"
        assert not self._bound, "a bind has no end"
        self._check_nothing_is_forgotten()
        self._check_gangs()

    def _answer_everything(self) -> None:
        while self.sent or self.asked or self.evicted or self.api.unseen:
            while self.sent:
                self.answer(0, "")
            while self.asked:
                self.resolve(0)
            while self.evicted:
                self._evict(self.evicted.pop(), again=False)
            self.api.deliver_all(self.core)

    def _check_nothing_is_forgotten(self) -> None:
        """A cycle in which every job is active binds nothing."""
        cluster = self.core.cache.cluster
        for key in list(cluster.jobs.rows.of):
            cluster.jobs.hold(key, False)
        record = decide(cluster.snapshot(), self._policy, REGISTRY, EPOCH + self.now)
        assert [bind.pod for bind in record.binds] == [], "a job that fits was forgotten"

    def _check_gangs(self) -> None:
        """A gang that this leader began to bind is complete or released, whatever members were deleted. Of other gangs, members that
        were created after the first binding do not count (times in the API are whole seconds): such a gang looks like one that was
        complete and lost a member (see `half_bound_gangs`)."""
        for group in self.api.groups.values():
            members = [pod for pod in self.api.pods.values() if pod.group == group.name and pod.phase != "Failed"]
            bound = [pod for pod in members if pod.holds]
            first = min((int(pod.bound_at) for pod in bound), default=0)
            counted = [pod for pod in members if pod.node or int(pod.created) <= first]
            could_start = group.name in self._started or len(counted) >= group.min_member
            if bound and group.name not in self._complete and could_start:
                raise AssertionError(f"{group.name} stays half bound: {[pod.name for pod in bound]}")


def _outcome(sent: Sent, fault: str) -> Reply | KubeError:
    if fault == "unknown":
        return OutcomeUnknown("the connection was cut")
    if fault == "server error":
        return ServerFault(Status(code=500, reason="", message="etcd"))
    if sent.applied == "ok":
        return Reply(201, b"{}", None, True)
    if sent.applied == "missing":
        return NotFound(Status(code=404, reason="NotFound", message="no such pod"))
    if sent.applied == "conflict":
        return Conflict(Status(code=409, reason="Conflict", message="already assigned"))
    return Unreachable("no connection") if fault == "unreachable" else Forbidden(Status(code=403, reason="", message="no"))


def pick(choices: Iterable[T], choice: int) -> T:
    found = list(choices)
    return found[choice % len(found)]


def random_history(seed: int, steps: int = 60, policy: Policy = POLICY) -> FaultyCluster:
    """What hypothesis does in `LiveCoreMachine`, without its cost: the steps are chosen by a seeded generator."""
    rng = Random(seed)
    cluster = FaultyCluster([rng.randint(1, 4) for _ in range(rng.randint(1, 3))], policy)
    faults = ("",) if rng.random() < 0.1 else FAULTS if rng.random() < 0.5 else FAULTS[2:]
    for _ in range(rng.randint(5, steps)):
        _step(cluster, rng, faults)
        cluster.check()
    return cluster


def _step(cluster: FaultyCluster, rng: Random, faults: tuple[str, ...]) -> None:
    choice, leading = rng.randrange(1 << 16), cluster.core.leading
    match rng.choice("ppppgggdmmkkwwwWccccccccaarrrrrrqeesxln"):
        case "p":
            for _ in range(rng.randint(1, 3)):
                cluster.create_pod(rng.randint(1, 3))
        case "g":
            cluster.create_gang(rng.randint(2, 4), rng.randint(0, 1), rng.randint(1, 2))
        case "d" if cluster.api.pods:
            cluster.delete_pod(choice, rng.random() < 0.5)
        case "m" if cluster.waiting_members:
            cluster.delete_waiting_member(choice)
        case "k" if cluster.on_nodes:
            cluster.set_phase(choice, rng.choice(("Running", "Succeeded", "Failed")))
        case "w" if cluster.api.unseen:
            cluster.deliver(choice, rng.random() < 0.5)
        case "W":
            cluster.deliver_all()
        case "c" if leading:
            if rng.random() < 0.5:
                cluster.deliver_all()
            cluster.check_gangs()
            cluster.cycle(rng.choice(PAUSES))
        case "a" if cluster.unapplied:
            cluster.apply(choice)
        case "r" if cluster.sent:
            if rng.random() < 0.3 and cluster.unapplied:
                cluster.apply(choice)
            cluster.answer(choice, rng.choice(faults))
        case "q" if cluster.asked:
            cluster.resolve(choice)
        case "e" if cluster.evicted:
            if rng.random() < 0.2:
                cluster.answer_eviction_falsely(choice)
            else:
                cluster.end_eviction(choice, rng.random() < 0.7, rng.random() < 0.5)
        case "s":
            cluster.set_congested(rng.random() < 0.5)
        case "x" if rng.random() < 0.5:
            cluster.crash(rng.random() < 0.5)
        case "l":
            cluster.lose_lease() if leading else cluster.regain_lease()
        case "n" if len(cluster.api.nodes) < 4:
            cluster.add_node(rng.randint(1, 4))
        case _ if not leading:
            cluster.other_leader_binds(choice)
