"""An explanation as text: the cause first, then what is in the way, then what would start the job."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from navarch.cli.tables.text import print_line, print_prose
from navarch.explanation.result import Change, Explanation, NodeExplanation, NodeScores, QueueExplanation

_MOST = 8
"""Entries of a list that are shown; `-o json` has all."""
_CLAUSES = 12


def show_explanation(console: Console, found: Explanation) -> None:
    cause, order = found.cause, found.order
    print_line(console, f"{found.job} {found.state}: {cause.code}", "bold")
    print_prose(console, cause.message, "  ")
    if found.state == "impossible":
        print_prose(console, "never: it does not start on the empty cluster either (proved)", "  ")
    if cause.proof and cause.only is not None:
        print_prose(console, f"proved: {cause.proof}, nothing else -> {'starts' if cause.only else 'does not start'}", "  ")
    _evictions(console, found)
    if found.state in ("gone", "running"):
        _placements(console, found)
        _end(console, found)
        return
    if cause.code == "Starts":
        _end(console, found)
        return
    facts = [f"nodes: {found.nodes.feasible} of {found.nodes.total} have room for a pod of it now"]
    if order.place is not None:
        facts.append(f"order: {order.place} of {order.of} in {order.queue}, {order.overall} of {order.overall_of} in all")
    if order.starts_alone is not None and order.overall_of > 1:
        facts.append(f"alone among waiting jobs: {'starts' if order.starts_alone else 'does not start'}")
    print_prose(console, " | ".join(facts), "  ")
    _start(console, found)
    _nodes(console, found)
    _ahead(console, found)
    _blockers(console, found)
    _changes(console, found)
    _end(console, found)


def _start(console: Console, found: Explanation) -> None:
    eta = found.eta
    if eta is None:
        print_prose(console, f"start: not known, {found.eta_reason}", "  ")
    else:
        print_prose(console, f"start: 50 % by {eta.p50}, 90 % by {eta.p90}; between {eta.p05} and {eta.p95} in 9 of 10 cases", "  ")
        print_prose(console, f"by {eta.basis}", "    ")


def _nodes(console: Console, found: Explanation) -> None:
    reasons = found.nodes.reasons
    if reasons:
        shown = [f"{count} {text}" for text, count in list(reasons.items())[:_MOST]]
        print_prose(console, f"{found.nodes.total} nodes: {', '.join(shown)}", "")
    clauses = found.nodes.clauses[:_CLAUSES]
    if clauses:
        width = max(len("without"), *(len(each.clause) for each in clauses))
        print_line(console, f"  {'without':<{width}}  nodes  starts", "dim")
        for each in clauses:
            print_line(console, f"  {each.clause:<{width}}  {each.nodes:>5}  {'yes' if each.starts else 'no'}")


def _ahead(console: Console, found: Explanation) -> None:
    order = found.order
    if not order.ahead or order.overall is None:
        return
    parts = []
    for each in order.ahead[:_MOST]:
        size = ", ".join(f"{amount} {_short(name)}" for name, amount in each.requests.items())
        queue = f" in {each.queue}" if each.queue != order.queue else ""
        parts.append(f"{each.job}{queue} ({size or 'no requests'}, priority {each.priority}; by {each.because})")
    more = order.overall - 1 - len(parts)
    print_prose(console, f"ahead: {'; '.join(parts)}{f'; and {more} more' if more > 0 else ''}")


def _short(resource: str) -> str:
    return "GPU" if resource.endswith("/gpu") else resource


def _blockers(console: Console, found: Explanation) -> None:
    blockers = found.blockers
    if not blockers.jobs:
        return
    proof = "none can be left out" if blockers.minimal else "some of these may not be needed"
    count = len(blockers.jobs)
    print_prose(console, f"blocked by {count} job{'s' if count > 1 else ''} ({proof}): {_listed(blockers.jobs)}")
    for each in blockers.may_take[:_MOST]:
        answer = "yes" if each.allowed else f"no: {each.reason}"
        print_prose(console, f"may it take {each.job}? {answer}", "  ")


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST
    return ", ".join(names[:_MOST]) + (f" and {more} more" if more > 0 else "")


def _changes(console: Console, found: Explanation) -> None:
    for by, title in (("user", "you can change"), ("admin", "an administrator can change")):
        mine = [each for each in found.changes if each.by == by]
        if mine:
            print_line(console, f"{title}:", "bold")
        for each in mine:
            print_prose(console, f"{'+' if each.starts else '-'} {each.text}: {_effect(each)}", "  ")


def _effect(change: Change) -> str:
    if not change.starts:
        return "does not start"
    parts = ["starts" if change.cycles == 1 else f"starts after {change.cycles} cycles"]
    price = change.price
    for word, jobs in (("evicts", price.evicts), ("delays", [each for each in price.delays if each not in price.evicts])):
        if jobs:
            parts.append(f"{word} {_listed(jobs)}")
    if price.also_starts:
        parts.append(f"{_listed(price.also_starts)} start{'s' if len(price.also_starts) == 1 else ''} too")
    return ", ".join(parts)


def _end(console: Console, found: Explanation) -> None:
    for note in found.notes:
        print_prose(console, note)
    if found.not_established:
        print_prose(console, f"not established: {', '.join(found.not_established)} (--trials and --seconds allow more)")
    print_line(console, f"{found.trials} trials in {found.seconds:.1f} s", "dim")


def _evictions(console: Console, found: Explanation) -> None:
    for each in found.evictions:
        print_prose(console, f"{each.pod} is evicted from {each.node} by {each.action} for {each.gains}", "  ")
        for other in each.instead:
            answer = "could have gone as well" if other.allowed else f"refused: {other.reason}"
            print_prose(console, f"instead of it {other.job}? {answer}", "    ")


def _placements(console: Console, found: Explanation) -> None:
    """Scores by plugin, beside those of the node that comes next."""
    for each in found.placements:
        if each.scores is None:
            print_prose(console, f"{each.pod} on {each.node}: {each.note}")
            continue
        print_prose(console, f"{each.pod} on {each.node}: {_scores(each.scores)}")
        if each.runner_up is not None:
            word = "next" if each.rank == 1 else "better now"
            print_prose(console, f"{word}: {each.runner_up.node}: {_scores(each.runner_up)}", "  ")
        else:
            print_prose(console, "no other node would take it", "  ")


def _scores(scores: NodeScores) -> str:
    parts = ", ".join(f"{name} {score:g}" for name, score in scores.scores.items())
    return f"score {scores.total:g} ({parts})" if parts else "no scores"


def show_queue(console: Console, found: QueueExplanation) -> None:
    above = f" below {found.parent}" if found.parent else ""
    print_line(console, f"queue {found.queue}{above}: {found.state}, share {found.share:.2f}", "bold")
    for step in found.steps:
        amounts = ", ".join(f"{_short(name)} {amount}" for name, amount in step.amounts.items())
        print_prose(console, f"{step.text} {amounts}".rstrip(), "  ")
    for word, loans in (("holds beyond its due what is owed to", found.borrows), ("is owed what is held by", found.lends)):
        for loan in loans:
            amounts = ", ".join(f"{_short(name)} {amount}" for name, amount in loan.amounts.items())
            print_prose(console, f"{word} {loan.queue}: {amounts}", "  ")
    for number, job in enumerate(found.waiting[:_CLAUSES], start=1):
        print_line(console, f"  {number}. {job.job}: {job.pods} pods wait, {job.code}")
    if len(found.waiting) > _CLAUSES:
        print_line(console, f"  ... and {len(found.waiting) - _CLAUSES} more (-o json shows all)")
    for note in found.notes:
        print_prose(console, note)


def show_node(console: Console, found: NodeExplanation) -> None:
    states = ["ready" if found.ready else "not ready", *(["cordoned"] if found.unschedulable else []), *found.taints]
    print_line(console, f"node {found.node}: {', '.join(states)}, {found.pods} pods", "bold")
    free = ", ".join(f"{_short(name)} {amount}" for name, amount in found.free.items())
    print_prose(console, f"free: {free or 'nothing'}", "  ")
    if found.useless:
        useless = ", ".join(f"{_short(name)} {amount}" for name, amount in found.useless.items())
        print_prose(console, f"free, and of no use to any pod that waits: {useless}", "  ")
    if not found.waiting:
        print_prose(console, "no pod waits", "  ")
    for each in found.waiting[:_CLAUSES]:
        asked = ", ".join(f"{amount} {_short(name)}" for name, amount in each.requests.items()) or "nothing"
        answer = f"refused: {', '.join(each.refused)}" if each.refused else "would be taken"
        print_prose(console, f"{each.pods} pods of {_listed(each.jobs)} ({asked}): {answer}", "  ")
    for note in found.notes:
        print_prose(console, note)
