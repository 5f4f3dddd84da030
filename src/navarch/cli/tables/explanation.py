"""An explanation as text: the cause first, then what is in the way, then what would start the job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Console

from navarch.cli.tables.text import print_line, print_prose
from navarch.engine.reasons import NEVER
from navarch.explanation.result import NOTHING_STARTS_IT, Change, Explanation, NodeExplanation, NodeScores, QueueExplanation

_MOST = 8
"""Entries of a list that are shown; `-o json` has all."""
_CLAUSES = 12
_ANSWERED = frozenset({"Starts", "Running", "Finished", "Failed", "NoPods"})
"""Causes that leave no question: the job starts, runs or has ended, or there is nothing to start."""
_COULD = "nodes that could take a pod"


def show_explanation(console: Console, found: Explanation) -> None:
    cause = found.cause
    print_line(console, f"{found.known(found.job)} {found.state}: {cause.code}", "bold")
    if found.grows:
        hold = "holds a node" if found.held == 1 else "hold nodes"
        print_prose(console, f"{_pods(found.held)} {hold}, {found.pods['Pending']} more wait", "  ")
    if found.sentence:
        print_prose(console, found.sentence + (f"; {found.deciding.text}" if found.deciding is not None else ""), "  ")
    elif found.deciding is not None:
        print_prose(console, f"{cause.message.rstrip('.')}; {found.deciding.text}", "  ")
    if found.sentence or found.deciding is None:
        print_prose(console, f"the last cycle said: {cause.message}" if found.sentence else cause.message, "  ")
    if found.state == "impossible":
        when = "never" if cause.code == NEVER else "not as things are"
        print_prose(console, f"{when}: it does not start on the empty cluster either (proved)", "  ")
    if cause.proof and cause.only is not None:
        print_prose(console, f"proved: with {cause.proof} and nothing else changed {_says(found, cause.only)}", "  ")
    _evictions(console, found)
    if cause.code not in _ANSWERED:
        _place(console, found)
        if found.state == "pending":
            _start(console, found)
        _nodes(console, found)
        _ahead(console, found)
        _blockers(console, found)
        _changes(console, found)
    _placements(console, found)
    _end(console, found)


def _says(found: Explanation, starts: bool) -> str:
    """What a trial gave. Of a job that runs, trials ask for one more of its pods."""
    if found.grows:
        return "one more of its pods starts" if starts else "no more of its pods start"
    return "it starts" if starts else "it does not start"


def _place(console: Console, found: Explanation) -> None:
    order = found.order
    if order.place is not None and found.state != "impossible":
        text = f"place: {order.place} of {order.of} in queue {order.queue}, {order.overall} of {order.overall_of} in all queues"
        print_prose(console, text, "  ")
    if order.starts_alone is not None and order.overall_of > 1 and found.state != "impossible":
        either = "" if order.starts_alone else " either"
        print_prose(console, f"if no other job waited: {_says(found, order.starts_alone)}{either}", "  ")


def _start(console: Console, found: Explanation) -> None:
    eta = found.eta
    if eta is None:
        print_prose(console, f"start: not known: {found.eta_reason}", "  ")
    else:
        print_prose(console, f"start: 50 % by {eta.p50}, 90 % by {eta.p90}; between {eta.p05} and {eta.p95} in 9 of 10 cases", "  ")
        print_prose(console, f"from {eta.basis}", "    ")


def _nodes(console: Console, found: Explanation) -> None:
    nodes = found.nodes
    could = f"{nodes.feasible} of {nodes.total} could take one pod of it"
    print_prose(console, f"nodes: {could}{', if it were placed before other waiting pods' if found.order.overall_of > 1 else ''}")
    if nodes.message and nodes.message != found.cause.message:
        print_prose(console, nodes.message, "  ")
    clauses = nodes.clauses[:_CLAUSES]
    if clauses:
        width = max(len("without"), *(len(each.clause) for each in clauses))
        starts = "one more pod starts" if found.grows else "the job starts"
        print_line(console, f"  {'without':<{width}}  {_COULD:>5}  {starts}", "dim")
        for each in clauses:
            print_line(console, f"  {each.clause:<{width}}  {each.nodes:>{len(_COULD)}}  {'yes' if each.starts else 'no'}")


def _ahead(console: Console, found: Explanation) -> None:
    order = found.order
    if not order.ahead or order.overall is None:
        return
    shown = order.ahead[:_MOST]
    print_line(console, "served before it:")
    for each in shown:
        size = ", ".join(f"{amount} {_short(name)}" for name, amount in each.requests.items())
        queue = f" in queue {each.queue}" if each.queue != order.queue else ""
        asked = f"{size or 'no requests'}, priority {each.priority}"
        print_prose(console, f"{found.known(each.job)}{queue}: {asked}; first by {each.because}", "  ")
    more = order.overall - 1 - len(shown)
    if more > 0:
        print_line(console, f"  and {more} more")


def _short(resource: str) -> str:
    return "GPU" if resource.endswith("/gpu") else resource


def _blockers(console: Console, found: Explanation) -> None:
    blockers = found.blockers
    if not blockers.jobs:
        return
    count = len(blockers.jobs)
    starts = _says(found, True) if found.grows else "the job starts"
    proof = f"without {'it' if count == 1 else 'them'} {starts}"
    if not blockers.minimal:
        proof += "; some may not be needed"
    elif count > 1:
        proof += ", and none can be left out"
    print_prose(console, f"blocked by {count} job{'s' if count > 1 else ''} ({proof}): {_listed(map(found.known, blockers.jobs))}")
    for each in blockers.may_take[:_MOST]:
        until = f", until {each.until}" if each.until else ""
        answer = "yes" if each.allowed else f"no, {each.reason}{until}"
        print_prose(console, f"may it evict {found.known(each.job)}? {answer}", "  ")


def _listed(names: Iterable[str]) -> str:
    shown = list(names)
    more = len(shown) - _MOST
    return ", ".join(shown[:_MOST]) + (f" and {more} more" if more > 0 else "")


def _changes(console: Console, found: Explanation) -> None:
    for by, title in (("user", "what you can change"), ("admin", "what an administrator can change")):
        mine = [each for each in found.changes if each.by == by]
        if mine:
            print_line(console, f"{title} (each was tried):", "bold")
        for each in mine:
            print_prose(console, f"{'+' if each.starts else '-'} {each.text}: {_effect(found, each)}", "  ")


def _effect(found: Explanation, change: Change) -> str:
    if not change.starts:
        return _says(found, False) + (f", because {change.because.rstrip('.')}" if change.because else "")
    parts = [_says(found, True) + ("" if change.cycles == 1 else f" after {change.cycles} cycles")]
    price = change.price
    for word, jobs in (("evicts", price.evicts), ("delays", [each for each in price.delays if each not in price.evicts])):
        if jobs:
            parts.append(f"{word} {_listed(map(found.known, jobs))}")
    if price.also_starts:
        parts.append(f"{_listed(map(found.known, price.also_starts))} start{'s' if len(price.also_starts) == 1 else ''} too")
    return ", ".join(parts)


def _end(console: Console, found: Explanation) -> None:
    for note in found.notes:
        print_prose(console, note)
    if found.not_established:
        more = "" if found.not_established == [NOTHING_STARTS_IT] else " (--trials and --seconds allow more)"
        print_prose(console, f"not established: {', '.join(found.not_established)}{more}")
    runs = "trial run" if found.trials == 1 else "trial runs"
    print_line(console, f"{found.trials} {runs} of the scheduler in {found.seconds:.1f} s", "dim")


def _evictions(console: Console, found: Explanation) -> None:
    for each in found.evictions:
        print_prose(console, f"{each.pod} is evicted from {each.node} by {each.action} for {each.gains}", "  ")
        for other in each.instead:
            answer = "the policy allows that too" if other.allowed else f"not allowed, {other.reason}"
            print_prose(console, f"evict {found.known(other.job)} instead? {answer}", "    ")


def _placements(console: Console, found: Explanation) -> None:
    """Scores by plugin, beside those of the node that comes next."""
    for each in found.placements:
        if each.scores is None:
            print_prose(console, f"{each.pod} on {each.node}: {each.note}")
            continue
        print_prose(console, f"{each.pod} on {each.node}: {_scores(each.scores)}")
        if each.runner_up is not None:
            word = "runner-up" if each.rank == 1 else "a better node now"
            print_prose(console, f"{word}: {each.runner_up.node}: {_scores(each.runner_up)}", "  ")
        else:
            print_prose(console, "no other node could take it now", "  ")


def _scores(scores: NodeScores) -> str:
    parts = ", ".join(f"{name} {score:g}" for name, score in scores.scores.items())
    return f"score {scores.total:g} ({parts})" if parts else "no scores"


def show_queue(console: Console, found: QueueExplanation) -> None:
    above = f" below {found.parent}" if found.parent else ""
    print_line(console, f"queue {found.queue}{above}: {found.state}", "bold")
    for step in found.steps:
        print_prose(console, f"{step.text} {_amounts(step.amounts)}".rstrip(), "  ")
    if found.deserved:
        print_prose(console, f"share {found.share:.2f}: the largest part that it holds of a resource that it is owed", "  ")
    for part in found.holds:
        names = ", ".join(found.names.get(job, job) for job in part.jobs[:_CLAUSES])
        more = f" and {len(part.jobs) - _CLAUSES} more jobs" if len(part.jobs) > _CLAUSES else ""
        print_prose(console, f"{part.standing}: {_pods(part.pods)} of {names}{more}", "  ")
    for loan in found.borrows:
        print_prose(console, f"it holds more than it is owed, and queue {loan.queue} less: {_amounts(loan.amounts)}", "  ")
    for loan in found.lends:
        print_prose(console, f"it holds less than it is owed, and queue {loan.queue} more: {_amounts(loan.amounts)}", "  ")
    if not found.waiting:
        print_prose(console, "none of its jobs waits after the next cycle", "  ")
    else:
        print_prose(console, "waiting after the next cycle, in order:", "  ")
    for number, job in enumerate(found.waiting[:_CLAUSES], start=1):
        print_line(console, f"    {number}. {found.names.get(job.job, job.job)}: {_pods(job.pods)}, {job.code}")
    if len(found.waiting) > _CLAUSES:
        print_line(console, f"    ... and {len(found.waiting) - _CLAUSES} more (-o json shows all)")
    for note in found.notes:
        print_prose(console, note)


def _amounts(amounts: Mapping[str, str]) -> str:
    return ", ".join(f"{_short(name)} {amount}" for name, amount in amounts.items())


def _pods(count: int) -> str:
    return f"{count} pod{'s' if count != 1 else ''}"


def show_node(console: Console, found: NodeExplanation) -> None:
    states = ["ready" if found.ready else "not ready", *(["cordoned"] if found.unschedulable else []), *found.taints]
    print_line(console, f"node {found.node}: {', '.join(states)}, {_pods(found.pods)}", "bold")
    print_prose(console, f"free: {_amounts(found.free) or 'nothing'}", "  ")
    if found.useless:
        print_prose(console, f"free, but no waiting pod that asks for it fits: {_amounts(found.useless)}", "  ")
    if not found.waiting:
        print_prose(console, "no pod waits", "  ")
    else:
        takes = sum(not each.refused for each in found.waiting)
        kinds = f"{takes} of {len(found.waiting)} kinds of" if takes else "none of the"
        print_prose(console, f"it could take {kinds} pods that wait:", "  ")
    for each in found.waiting[:_CLAUSES]:
        asked = ", ".join(f"{amount} {_short(name)}" for name, amount in each.requests.items()) or "no requests"
        answer = f"no, {', '.join(each.refused)}" if each.refused else "one fits"
        jobs = _listed(found.names.get(job, job) for job in each.jobs)
        print_prose(console, f"{_pods(each.pods)} of {jobs} ({asked} each): {answer}", "    ")
    if len(found.waiting) > _CLAUSES:
        print_line(console, f"    ... and {len(found.waiting) - _CLAUSES} more kinds of pods (-o json shows all)")
    for note in found.notes:
        print_prose(console, note)
