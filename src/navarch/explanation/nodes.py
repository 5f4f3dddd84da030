"""How many nodes would take a pod of the job, and how many refuse it at which clause."""

from __future__ import annotations

from navarch.engine.reasons import dominant
from navarch.engine.record import JobDecision
from navarch.engine.session import Session
from navarch.explanation.result import NodesAnswer
from navarch.explanation.trials import Run
from navarch.model.status import TaskStatus


def opened(run: Run) -> Session:
    """A session over the objects as they are, before any action."""
    rules = run.rules
    session = Session(run.snapshot(), rules.policy, rules.registry, run.now)
    rules.registry.make_actions(session)
    return session


def feasible_nodes(session: Session, key: str) -> int:
    """Nodes that pass every filter for the first pod of the job that waits, and have room for it now."""
    row = session.snapshot.jobs.keys.index(key) if key in session.snapshot.jobs.keys else -1
    job = session.job(row) if row >= 0 else None
    tasks = [] if job is None else session.sorted_tasks(job.tasks_in(TaskStatus.PENDING))
    if not tasks:
        return 0
    view = session.view(session.class_of(tasks[0]))
    return int((view.feasible() & view.idle).sum())


def nodes_answer(session: Session, key: str, decision: JobDecision | None) -> NodesAnswer:
    """How many nodes would take a pod of the job before any action, and what nodes said in the cycle."""
    found = NodesAnswer(len(session.nodes), feasible_nodes(session, key))
    reasons = decision.reasons if decision is not None else ()
    first = dominant(reasons)
    refusal = first if first is not None and first.nodes else next((reason for reason in reasons if reason.nodes), None)
    if refusal is not None:
        found.reasons = dict(sorted(refusal.nodes.items(), key=lambda each: (-each[1], each[0])))
        found.message = refusal.message
    return found
