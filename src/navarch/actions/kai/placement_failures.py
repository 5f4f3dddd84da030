"""Why an attempt to place a job failed, as reasons of the job in KAI's words.

A part of a gang below its minimum says for how many of its pods a node was found; a pod above the minimum has its own reason. Each
set of nodes that was tried gives one failure.
"""

from __future__ import annotations

from dataclasses import dataclass

from navarch.engine.job import Job
from navarch.engine.placement.fit_errors import FitErrors
from navarch.engine.pod_conditions import node_obstacle
from navarch.engine.reasons import Reason

_CODE = "PodSchedulingErrors"


@dataclass(frozen=True, slots=True)
class Failure:
    """`task` found no node after `found` others of its part did. -1: the job was refused as a whole."""

    task: int
    why: FitErrors | Reason
    found: int = 0


def note_failures(job: Job, failures: list[Failure]) -> None:
    for failure in failures:
        if failure.task < 0:
            assert isinstance(failure.why, Reason)
            job.refuse(failure.why)
        else:
            reason = failed_task(job, failure)
            job.fit_errors[failure.task] = FitErrors(len(reason.nodes), message=reason.message, codes=(reason.cause or _CODE,))
            job.refuse(reason)


def failed_task(job: Job, failure: Failure) -> Reason:
    task, why = failure.task, failure.why
    pod, tree = job.session.task(task).key, job.tree
    leaf = tree.leaf_of(task)
    figures: dict[str, int | float | str] = {"pod": pod}
    needed = 0 if leaf is None else tree.required(leaf)
    said = f"Resources were not found for pod {pod} due to: "
    is_gang = any(tree.required(each) > 1 for each in tree.leaves)
    if leaf is not None and is_gang and tree.counts_of(leaf).used + failure.found < needed:
        figures |= {"found": failure.found, "needed": needed}
        if job.spec.sub_groups:
            figures["subGroup"] = leaf.name
            said = (
                f"Resources were found for {failure.found} pods from all sub-groups while sub-group {leaf.name} requires {needed} "
                "pods for gang scheduling. Additional pods cannot be scheduled in this sub-group due to: "
            )
        else:
            said = (
                f"Resources were found for {failure.found} pods while {needed} are required for gang scheduling. "
                "Additional pods cannot be scheduled due to: "
            )
    if isinstance(why, Reason):
        figures |= dict(why.figures)
        return Reason(_CODE, said + why.message, figures=figures, undone_by=why.undone_by, cause=why.origin)
    return Reason(_CODE, said + why.message, why.nodes, figures | why.figures, why.undone_by, cause=node_obstacle(why.codes))
