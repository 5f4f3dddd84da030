"""Turns in one step: the jobs at the head of the only queue that waits get one task each, or one job gets several tasks.

A ready job returns for one task a turn. With thousands of elastic jobs most of a cycle is such turns, although their outcome is
known: a job that holds more falls behind, by as much as the last job of its kind did, and the jobs in front of that place come before
it again; a job whose key does not change is first again. This module takes all turns of such a run together: one question to the
queue, one choice of nodes (`ClassView.choose`, `placement/mixed_run` equal placing tasks one by one), one move of the nodes' figures.

Nothing is assumed about the run beforehand. It is placed on a statement, then the keys, the readiness and the queue are asked as after
the last of its turns. Turns that the plain order would not have taken in this place are undone. Answers after the last turn tell those
in between where plugins say `turns_in_one_step`: a job's key depends on that job alone and does not fall while the job grows, a ready
job stays ready, and an overused queue stays overused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from navarch.actions.job_queues import JobHeap, Turns
from navarch.engine.job import Job
from navarch.engine.node_functions import TaskClass
from navarch.engine.placement.mixed_run import MixedRuns
from navarch.engine.points.protocols import Allocatable, JobOrder, JobReady, JobTurn, MovingTaskOrder, Overused
from navarch.engine.session import Session

_MOST = 1 << 10
"""Turns that are taken in one step at most."""
_FIRST = 8
"""Turns that are tried in one step at first, and after attempts that failed."""
_WORTH = 4
"""A run over several classes is worth it with so many tasks a class."""
_LONGEST_PAUSE = 64
"""Rounds without mixed classes, or plain turns, where one attempt after the other was not worth it."""
_TIE_BREAK = -2
"""Where the tie-break (age and name) begins in a job's key, behind the plugins' parts."""


def may_take_turns_together(session: Session) -> bool:
    """Whether the plugins of the policy allow it."""
    if session.implementing(JobTurn) or session.implementing(MovingTaskOrder):
        return False
    if any(plugin.asked_servers(plugin.given) for plugin in session.plugins):
        return False  # a server outside hears of every placement in its turn, and of none that is only tried
    asked: list[Any] = [*session.implementing(JobOrder), *session.implementing(JobReady), *session.implementing(Overused)]
    return all(plugin.turns_in_one_step for plugin in asked)


class EqualTurns:
    def __init__(self, session: Session, turns: Turns, tasks_of: Callable[[Job], list[int]]) -> None:
        """`tasks_of`: the waiting tasks of a job in order, the next one last."""
        self._session = session
        self._turns = turns
        self._tasks_of = tasks_of
        self._most = _FIRST
        self._plain_turns = 0
        """Plain turns until the next attempt, after attempts that failed."""
        self._pause = 1
        self._stays_first = False
        """Whether the key of the last job did not rise with its turn."""
        self._runs = MixedRuns()
        self._unmixed = 0
        """Rounds until classes are mixed again, after runs that were not worth it."""
        self._pause_mixing = 1
        self._steps: dict[int, tuple[float, ...]] = {}
        """Class -> by how much the key of a job rose with a task of the class, the last time."""
        self._mixing: dict[int, bool] = {}
        """Class -> whether it may be placed between tasks of other classes."""
        limits: list[Any] = [*session.implementing(Allocatable)]
        self._mixed = all(plugin.turns_in_one_step for plugin in limits)

    def take(self, job: Job, others: JobHeap) -> bool:
        """Take turns of this job, the first of its queue, and of those behind it. False: nothing was done, and the job needs a plain
        turn."""
        session = self._session
        if self._plain_turns:
            self._plain_turns -= 1
            return False
        if not self._turns.is_last() or session.job_missing(job) != 1:
            return False
        if not len(others) and len(self._tasks_of(job)) < 2:
            return False  # one turn is all there is
        task = self._next_class(job)
        if task is None or not self._may_run(task):
            return False
        if self._stays_first or not len(others):
            return self._repeat(job, others, task)
        return self._go_round(job, others, task)

    def _may_run(self, task: TaskClass) -> bool:
        """Whether tasks of the class can be placed in a run."""
        session = self._session
        return not session.view(task).one_by_one(None) and session.pre_predicate(task) is None

    def _may_mix(self, task: TaskClass) -> bool:
        found = self._mixing.get(task.number)
        if found is None:
            found = self._mixing[task.number] = self._mixed and self._session.view(task).can_mix()
        return found

    def _next_class(self, job: Job) -> TaskClass | None:
        """The class of the next task; None if its turn may be more than one plain step: it has parts, a nominated node, or tasks that
        were refused before."""
        spec = job.spec
        if spec.sub_groups or spec.topology is not None or job.fit_errors:
            return None
        tasks = self._tasks_of(job)
        return None if not tasks or self._session.task(tasks[-1]).nominated_node else self._session.class_of(tasks[-1])

    def _go_round(self, first: Job, others: JobHeap, task: TaskClass) -> bool:
        """The first job and those behind it, one task each, up to the place to which one of them is expected to fall. Their tasks are
        of one class, or of classes that mix."""
        session = self._session
        entries, classes, asked = [(others.popped, first)], [task], {task.number}
        mixes = not self._unmixed and self._may_mix(task)
        self._unmixed = max(self._unmixed - 1, 0)
        falls_to = self._expected(task, others.popped)
        while len(entries) < self._most and (best := others.peek()) is not None:
            key, job = best
            if key[:_TIE_BREAK] >= falls_to and key[:_TIE_BREAK] != entries[0][0][:_TIE_BREAK]:
                break
            if session.job_missing(job) != 1 or (kind := self._next_class(job)) is None:
                break
            if kind.number not in asked:
                if not (mixes and self._may_mix(kind) and self._may_run(kind)):
                    break
                asked.add(kind.number)
            others.pop()
            if kind is not classes[-1] or key[:_TIE_BREAK] != entries[-1][0][:_TIE_BREAK]:
                falls_to = min(falls_to, self._expected(kind, key))
            entries.append(best)
            classes.append(kind)
        if len(entries) == 1:
            return self._alone()
        mixed = len(asked) > 1 and self._room_for_all(first, classes)
        nodes = self._runs.choose([session.view(kind) for kind in classes]) if mixed else self._choose_run(first, classes)
        if mixed:
            self._weigh(len(nodes), len(entries), len(asked))
        jobs = [job for _, job in entries[: len(nodes)]]
        statement, undone = session.statement(), [job.last_undone.copy() for job in jobs]
        lists = [self._tasks_of(job) for job in jobs]
        placing = [tasks[-1] for tasks in lists]
        keys: list[Any] = []
        if nodes and not statement.allocate_each(jobs, placing, nodes, classes[: len(jobs)]):
            keys = self._keys_in_order(entries, jobs, lists)
            statement.roll_back(len(keys))
            if not self._holds(jobs[: len(keys)]):
                keys.clear()
        statement.roll_back(len(keys))
        for job, before in list(zip(jobs, undone))[len(keys) :]:
            job.last_undone = before
        for key, job in entries[max(len(keys), 1) :]:
            others.push_with(key, job)
        if not keys:
            return self._failed(len(entries))
        statement.commit()
        if mixed:
            self._runs.placed(nodes[: len(keys)])
        rose: dict[int, int] = {}
        """Class -> a turn with a task of the class."""
        for number, (job, key, tasks) in enumerate(zip(jobs, keys, lists)):
            session.tried[job.key] = None
            tasks.pop()
            if tasks:
                others.push_with(key, job)
                rose[classes[number].number] = number
        for kind_number, number in rose.items():
            self._steps[kind_number] = _difference(entries[number][0][:_TIE_BREAK], keys[number][:_TIE_BREAK])
        self._stays_first = len(keys) == 1 and len(jobs) > 1
        return self._succeeded(len(keys))

    def _expected(self, task: TaskClass, key: Any) -> tuple[Any, ...]:
        """Where the job with this key is expected to fall with one more task: the parts of its key. Just behind jobs with the same
        key, if nothing is known."""
        parts: tuple[Any, ...] = key[:_TIE_BREAK]
        step = self._steps.get(task.number, ())
        return tuple(part + more for part, more in zip(parts, step)) if len(step) == len(parts) else parts

    def _keys_in_order(self, entries: Sequence[tuple[Any, Job]], jobs: Sequence[Job], lists: Sequence[list[int]]) -> list[Any]:
        """The keys of the jobs after their turns, as far as plain turns would have had them in this order: until a job that had its
        turn comes before the next one again."""
        keys: list[Any] = []
        lowest: Any = None
        for (before, _), job, tasks in zip(entries, jobs, lists):
            if lowest is not None and lowest < before:
                break
            key: Any = self._session.job_order(job)
            keys.append(key)
            if len(tasks) > 1 and (lowest is None or key < lowest):
                lowest = key
        return keys

    def _repeat(self, job: Job, others: JobHeap, task: TaskClass) -> bool:
        """Several tasks of a ready job that is first again after each of them."""
        session, tasks = self._session, self._tasks_of(job)
        chosen: list[int] = []
        for row in reversed(tasks[-self._most :]):
            if session.class_of(row) is not task or session.task(row).nominated_node:
                break
            chosen.append(row)
        if len(chosen) == 1 or not session.job_ready(job):
            return False
        nodes = self._choose(job, task, len(chosen))
        statement, undone = session.statement(), job.last_undone.copy()
        if nodes and not statement.allocate(job, chosen[: len(nodes)], nodes, task) and self._holds([job]):
            key, best = session.job_order(job), others.peek()
            if best is None or key < best[0]:
                statement.commit()
                session.tried[job.key] = None
                del tasks[-len(nodes) :]
                if tasks:
                    others.push_with(key, job)
                return self._succeeded(len(nodes))
            self._stays_first = False
        statement.discard()
        job.last_undone = undone
        return self._failed(len(chosen))

    def _choose(self, job: Job, task: TaskClass, count: int) -> list[int]:
        """Nodes with room now for up to `count` tasks; none where the first of them needs a plain turn."""
        session = self._session
        room, refused = session.allocatable(job.queue, task, count)
        if refused is not None:
            return []
        nodes, pipelined = session.view(task).choose(room)
        return [] if pipelined or session.view(task).scoring_failure() is not None else nodes

    def _room_for_all(self, first: Job, classes: Sequence[TaskClass]) -> bool:
        """Whether the queue has room for one task of each of these classes. Where it has room for as many tasks of one class as there
        are tasks, whatever the class, it has room for any mixture: its limits are by resource."""
        session = self._session
        kinds = {task.number: task for task in classes}.values()
        return all(session.allocatable(first.queue, task, len(classes)) == (len(classes), None) for task in kinds)

    def _choose_run(self, first: Job, classes: Sequence[TaskClass]) -> list[int]:
        """Nodes for the tasks in front that are of one class."""
        alike = next((number for number, task in enumerate(classes) if task is not classes[0]), len(classes))
        return self._choose(first, classes[0], alike)

    def _holds(self, jobs: Sequence[Job]) -> bool:
        """Whether each job is ready after its turn, and the queue may go on after the last one."""
        return self._session.overused(jobs[0].queue) is None and all(map(self._session.job_ready, jobs))

    def _weigh(self, sure: int, asked: int, classes: int) -> None:
        """Mix no classes for a while where runs over them end early: each class is asked once a run, however short the run is."""
        if sure < asked and sure < _WORTH * classes:
            self._unmixed, self._pause_mixing = self._pause_mixing - 1, min(2 * self._pause_mixing, _LONGEST_PAUSE)
        elif sure >= _WORTH * classes:
            self._pause_mixing = 1

    def _succeeded(self, count: int) -> bool:
        self._most, self._pause = min(max(2 * count, self._most // 2, _FIRST), _MOST), 1
        return True

    def _alone(self) -> bool:
        """The job behind the first is of another class or has another key, and so may those behind it."""
        self._plain_turns, self._pause = self._pause - 1, min(2 * self._pause, _LONGEST_PAUSE)
        return False

    def _failed(self, count: int) -> bool:
        self._most = count // 2
        if self._most < 2:
            self._most, self._plain_turns = _FIRST, self._pause
            self._pause = min(2 * self._pause, _MOST)
        return False


def _difference(before: tuple[Any, ...], after: tuple[Any, ...]) -> tuple[float, ...]:
    """By how much each part of a key rose; empty if some part is no number."""
    if not all(isinstance(part, int | float) for part in (*before, *after)):
        return ()
    return tuple(new - old for old, new in zip(before, after))
