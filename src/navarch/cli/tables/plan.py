"""The tables of `navarch plan`: placements, waiting jobs with their reasons, evictions, and figures of queues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from navarch.cli.tables.text import print_line, print_prose, print_table
from navarch.engine.record import CycleRecord
from navarch.ingest.groups import shown_key
from navarch.offline.plan import Plan

_FIGURES = (("deserved", "DESERVED"), ("allocated", "ALLOCATED"), ("request", "REQUEST"), ("fairShare", "FAIR SHARE"))
"""Only a policy that divides shares over a tree of queues has the last one."""
_WORTH_TELLING = 0.001
"""A plugin's part of opening and closing is shown if it takes at least this many seconds."""


def show(plan: Plan, *, verbose: bool = False, console: Console | None = None) -> None:
    console = console or Console(highlight=False)
    for record, cycle in zip(plan.records, plan.to_dict()["cycles"], strict=True):
        if len(plan.records) > 1:
            print_line(console, f"=== cycle {cycle['cycle']}", "bold")
        waiting = [job for job in cycle["jobs"] if job["pods"].get("Pending") or (job["reasons"] and not job["pods"])]
        if not (waiting or cycle["binds"] or cycle["evictions"] or cycle["nominations"]):
            print_line(console, "Nothing waits, nothing to decide.")
            print_line(console)
        _placed(console, cycle["binds"])
        _evicted(console, cycle["evictions"])
        _promised(console, cycle["nominations"])
        _waiting(console, waiting, _rooms(record), verbose=verbose)
        _queues(console, cycle["queues"])
    if verbose:
        _timings(console, plan.timings)


def _placed(console: Console, binds: list[dict[str, str]]) -> None:
    print_table(console, f"Placed: {len(binds)}", ("POD", "NODE"), [(bind["pod"], bind["node"]) for bind in binds])


def _evicted(console: Console, evictions: list[dict[str, str]]) -> None:
    by = [e["action"] if e["reason"] in ("", e["action"]) else f"{e['action']} ({e['reason']})" for e in evictions]
    rows = [(e["pod"], e["node"], action, e["for"] or "-") for e, action in zip(evictions, by)]
    print_table(console, f"Evicted: {len(rows)}", ("POD", "FROM", "BY", "FOR"), rows)


def _promised(console: Console, nominations: list[dict[str, str]]) -> None:
    rows = [(n["pod"], n["node"]) for n in nominations]
    print_table(console, f"Promised, once what they wait for is released: {len(rows)}", ("POD", "NODE"), rows)


def _waiting(console: Console, jobs: list[dict[str, Any]], rooms: Mapping[str, int], *, verbose: bool) -> None:
    rows = [
        (job["job"], job["queue"] or "-", job["phase"] or "-", str(job["pods"].get("Pending", 0)), str(job["minMember"]))
        for job in jobs
    ]
    notes = [_why(job, rooms.get(job["job"], 0), verbose=verbose) for job in jobs]
    print_table(console, f"Waiting: {len(rows)}", ("JOB", "QUEUE", "PHASE", "PENDING", "MIN"), rows, notes)


def _rooms(record: CycleRecord) -> dict[str, int]:
    """Job -> its pending pods that found a node and gave it back, because the rest of the gang found none."""
    found = {}
    for job in record.jobs:
        room = sum(refusal.had_room for refusal in job.refusals)
        if room and job.pods.get("Pending", 0) >= room:
            found[shown_key(job.job)] = room
    return found


def _why(job: Mapping[str, Any], room: int, *, verbose: bool) -> list[str]:
    texts: list[str] = []
    for reason in job["reasons"]:
        # the refusal after an eviction attempt often equals the first refusal
        if not any(reason["message"].rpartition("due to: ")[2] in told for told in texts):
            texts.append(reason["message"] + _numbers(reason))
    if not texts:
        texts = [c["message"] or c["reason"] for c in job["conditions"] if c["type"] == "Unschedulable"]
    texts = list(dict.fromkeys(texts)) or ["not reached in this cycle"]
    if not verbose and len(texts) > 3:
        texts = [*texts[:3], f"... and {len(texts) - 3} more (-v shows all)"]
    if room and not any(text.startswith("Resources were found for") for text in texts):
        pending, least = job["pods"]["Pending"], job["minMember"]
        texts.insert(0, f"there is room for {room} of its {pending} pending pods, but the gang starts with {least} or not at all:")
    undone = dict.fromkeys(event for reason in job["reasons"] for event in reason["undoneBy"])
    return [*texts, f"looked at again after: {', '.join(undone)}"] if undone else texts


def _numbers(reason: Mapping[str, Any]) -> str:
    """The figures of a reason whose message only counts nodes."""
    shown = [f"{name} {amount}" for name, amount in reason["figures"].items() if " " in name]
    return f" ({', '.join(shown)})" if shown and reason["nodes"] else ""


def _queues(console: Console, queues: list[dict[str, Any]]) -> None:
    """One row for each resource: amounts of several resources in one cell are hard to compare."""
    shown = dict(_FIGURES if any("fairShare" in queue for queue in queues) else _FIGURES[:-1])
    rows: list[tuple[str, ...]] = []
    idle = []
    for queue in queues:
        parts = [queue.get(part, {}) for part in shown]
        resources = sorted({name for part in parts for name, amount in part.items() if amount != "0"})
        for number, name in enumerate(resources):
            head = (queue["queue"], f"{queue['share']:.2f}") if not number else ("", "")
            rows.append((*head, name, *(part.get(name, "-") for part in parts)))
        if not resources:
            idle.append(queue["queue"])
    print_table(console, "Queues", ("QUEUE", "SHARE", "RESOURCE", *shown.values()), rows)
    if idle:
        print_prose(console, f"Unused queues: {', '.join(idle)}")
        print_line(console)


def _timings(console: Console, timings: Mapping[str, float]) -> None:
    told = {n: seconds for n, seconds in timings.items() if not n.endswith(")") or seconds >= _WORTH_TELLING}
    print_prose(console, "Timings: " + ", ".join(f"{name} {seconds * 1000:.1f} ms" for name, seconds in told.items()))
