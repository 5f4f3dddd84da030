"""What a gang loses together: pods above its minimum one by one, the others all or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from navarch.engine.session import Session


def lost_together(session: Session, candidates: Sequence[int]) -> list[list[int]]:
    """The candidates as lists that go whole or stay, in the order of their first members. A job below its minimum is broken, so it
    loses its pods one by one."""
    units: list[list[int]] = []
    spare: dict[int, int] = {}
    rest: dict[int, list[int]] = {}
    for task in candidates:
        job = session.job_of(task)
        if job is None:
            continue
        broken = job.ready_count < job.min_member
        left = spare.setdefault(job.row, job.ready_count - job.min_member)
        if broken or left > 0:
            spare[job.row] = left - 1
            units.append([task])
        elif job.row in rest:
            rest[job.row].append(task)
        else:
            rest[job.row] = [task]
            units.append(rest[job.row])
    return units
