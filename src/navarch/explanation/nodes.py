"""How many nodes would take a pod of the job, and how many refuse it at which clause."""

from __future__ import annotations

from navarch.engine.record import JobDecision
from navarch.engine.session import Session
from navarch.explanation.trials import Run
from navarch.model.status import TaskStatus


def opened(run: Run) -> Session:
    """A session over the objects as they are, before any action."""
    rules = run.rules
    session = Session(run.cluster.snapshot(rules.policy.semantics.node_order), rules.policy, rules.registry, run.now)
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


def reasons_of(decision: JobDecision | None) -> dict[str, int]:
    """What nodes said, by how many said it: of the first refusal that any node gave."""
    for reason in decision.reasons if decision is not None else ():
        if reason.nodes:
            return dict(sorted(reason.nodes.items(), key=lambda each: (-each[1], each[0])))
    return {}
