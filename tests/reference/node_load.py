"""usage and rescheduling in plain Python, one pod and one node at a time: slow, and written from the rules.

Amounts are millicores and bytes. The load of nodes is in percent."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Machine:
    name: str
    cpu: int
    memory: int
    load: tuple[float, float]
    fresh: bool = True
    cordoned: bool = False
    estimate: list[float] = field(default_factory=lambda: [0.0, 0.0])
    used: list[int] = field(default_factory=lambda: [0, 0])


@dataclass(frozen=True)
class Worker:
    name: str
    cpu: int
    memory: int
    limits: tuple[int, int] = (0, 0)
    node: str = ""
    young: bool = False
    priority: int | None = None
    quality: int = 1
    gang: str = ""


@dataclass(frozen=True)
class Rule:
    weight: int = 5
    weights: tuple[int, int] = (1, 1)
    thresholds: tuple[int, int] = (80, 80)
    request_ratio: float = 0.7
    burst_ratio: float = 0.0
    risk_threshold: float = 0.6
    risk_factor: float = 1.2
    best_effort: tuple[float, float] = (250.0, 200.0 * 1024 * 1024)


def load_of(machine: Machine) -> list[float]:
    out = []
    for percent, estimate, capacity in zip(machine.load, machine.estimate, (machine.cpu, machine.memory), strict=True):
        out.append(min(1.0, max(0.0, (percent / 100.0 * capacity + estimate) / capacity)))
    return out


def put(machine: Machine, worker: Worker, rule: Rule) -> None:
    """The worker joins the machine: its requests, and its estimated load."""
    cpu, memory = load_of(machine)
    total = sum(rule.weights)
    mean = (cpu * rule.weights[0] + memory * rule.weights[1]) / total if total else 0.0
    risk = rule.risk_factor if mean >= rule.risk_threshold else 1.0
    for i, request in enumerate((worker.cpu, worker.memory)):
        if not worker.cpu and not worker.memory:
            machine.estimate[i] += rule.best_effort[i] * risk
        else:
            most = max(worker.limits[i], request)
            machine.estimate[i] += min(most, (request * rule.request_ratio + (most - request) * rule.burst_ratio) * risk)


def score(machine: Machine, rule: Rule) -> float:
    total = sum(rule.weights)
    if not machine.fresh or not total:
        return 0.0
    cpu, memory = load_of(machine)
    return ((1.0 - cpu) * rule.weights[0] + (1.0 - memory) * rule.weights[1]) / total * 100.0 * rule.weight


def placed(machines: list[Machine], workers: list[Worker], rule: Rule) -> dict[str, str]:
    """Where each pending worker goes, one after the other; the first of equal machines."""
    by_name = {machine.name: machine for machine in machines}
    for worker in workers:
        if worker.node:
            by_name[worker.node].used[0] += worker.cpu
            by_name[worker.node].used[1] += worker.memory
            if worker.young:
                put(by_name[worker.node], worker, rule)
    found = {}
    for worker in workers:
        if worker.node:
            continue
        fitting = [
            machine
            for machine in machines
            if machine.used[0] + worker.cpu <= machine.cpu
            and machine.used[1] + worker.memory <= machine.memory
            and not (machine.fresh and (machine.load[0] > rule.thresholds[0] or machine.load[1] > rule.thresholds[1]))
        ]
        if not fitting:
            continue
        best = max(fitting, key=lambda machine: (score(machine, rule), [-ord(letter) for letter in machine.name]))
        best.used[0] += worker.cpu
        best.used[1] += worker.memory
        put(best, worker, rule)
        found[worker.name] = best.name
    return found


def moved(
    machines: list[Machine],
    workers: list[Worker],
    low: tuple[int, int],
    target: tuple[int, int],
    minimums: dict[str, int],
) -> set[str]:
    """The workers that lowNodeUtilization evicts."""
    load = {machine.name: list(machine.load if machine.fresh else (0.0, 0.0)) for machine in machines}
    known = [machine for machine in machines if machine.fresh]
    idle = [m for m in known if not m.cordoned and load[m.name][0] < low[0] and load[m.name][1] < low[1]]
    busy = [m for m in known if m not in idle and (load[m.name][0] > target[0] or load[m.name][1] > target[1])]
    if not idle or not busy or len(idle) == len(machines):
        return set()
    room = [0, 0]
    for machine in idle:
        for i, have in enumerate((machine.cpu, machine.memory)):
            room[i] += int(target[i] * float(have) * 0.01) - int(load[machine.name][i] * float(have) * 0.01)
    left = {gang: sum(worker.gang == gang for worker in workers) for gang in minimums}
    victims: set[str] = set()
    for machine in sorted(busy, key=lambda m: -(load[m.name][0] + load[m.name][1])):
        here = [worker for worker in workers if worker.node == machine.name]
        for worker in sorted(here, key=lambda w: (w.priority is not None, w.priority or 0, w.quality, w.name)):
            now = load[machine.name]
            if now[0] < target[0] and now[1] < target[1]:
                break
            if any(amount <= 0 for amount in room):
                break
            if minimums[worker.gang] > 1 and left[worker.gang] <= minimums[worker.gang]:
                continue
            left[worker.gang] -= 1
            victims.add(worker.name)
            now[0] -= worker.cpu * 1e-3 * 100 / (machine.cpu * 1e-3)
            now[1] -= worker.memory * 100 / machine.memory
            room[0] -= worker.cpu
            room[1] -= worker.memory
    return victims
