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
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from navarch.actions.job_queues import Entry, JobHeap, Turns
from navarch.engine.job import Job
from navarch.engine.node_functions import TaskClass
from navarch.engine.placement.mixed_run import MixedRuns
from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import Allocatable, JobMissing, JobOrder, JobReady, JobTurn, Overused
from navarch.engine.session import Session
from navarch.model.status import TaskStatus

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
    if session.implementing(JobTurn):
        return False
    if any(plugin.asked_servers(plugin.given) for plugin in session.plugins):
        return False  # a server outside hears of every placement in its turn, and of none that is only tried
    points: list[type[Any]] = [JobOrder, JobReady, JobMissing, Overused]
    return all(plugin.turns_in_one_step for point in points for plugin in session.implementing(point))


@dataclass(slots=True, eq=False)
class _Waiting:
    """The next tasks of a job that returns for one task a turn."""

    job: Job
    tasks: list[int]
    """The next one is the last."""
    task: TaskClass
    alike: int
    """How many of the next tasks are of this class."""
    ready: bool = False
    """It had a turn, and was ready after it."""


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
        self._unmixed = 0
        """Rounds until classes are mixed again, after runs that were not worth it."""
        self._pause_mixing = 1
        self._known: dict[int, _Waiting] = {}
        """Job row -> its next tasks, until it has a plain turn."""
        self._steps: dict[int, tuple[float, ...]] = {}
        """Class -> by how much the key of a job rose with a task of the class, the last time."""
        self._mixing: dict[int, bool] = {}
        """Class -> whether it may be placed between tasks of other classes."""
        self._traced = [each for each in session.plugins if type(each).undo_leaves_trace is not Plugin.undo_leaves_trace]
        limits: list[Any] = [*session.implementing(Allocatable)]
        self._mixed = all(plugin.turns_in_one_step for plugin in limits)

    @cached_property
    def _runs(self) -> MixedRuns:
        return MixedRuns()

    def take(self, job: Job, others: JobHeap) -> bool:
        """Take turns of this job, the first of its queue, and of those behind it. False: nothing was done, and the job needs a plain
        turn."""
        done = self._take(job, others)
        if not done:
            self._known.pop(job.row, None)
        return done

    def _take(self, job: Job, others: JobHeap) -> bool:
        if self._plain_turns:
            self._plain_turns -= 1
            return False
        if not self._turns.is_last():
            return False
        if not len(others) and len(self._tasks_of(job)) < 2:
            return False  # one turn is all there is
        waiting = self._known.get(job.row) or self._look(job)
        if waiting is None or not self._may_run(waiting.task):
            return False
        if self._stays_first or not len(others):
            return self._repeat(job, others, waiting.task)
        return self._go_round(waiting, others)

    def _may_run(self, task: TaskClass) -> bool:
        """Whether tasks of the class can be placed in a run, and the run be undone."""
        session = self._session
        if any(plugin.undo_leaves_trace(task) for plugin in self._traced):
            return False
        return not session.view(task).one_by_one(None) and session.pre_predicate(task) is None

    def _may_mix(self, task: TaskClass) -> bool:
        found = self._mixing.get(task.number)
        if found is None:
            found = self._mixing[task.number] = self._mixed and self._session.view(task).can_mix()
        return found

    def _look(self, job: Job) -> _Waiting | None:
        """The next tasks of a job. None: its turn may be more than one plain step, because it needs more tasks, or has parts, a
        nominated node, or tasks that were refused before, or that an earlier turn placed and did not bind."""
        session, spec = self._session, job.spec
        if session.job_missing(job) != 1 or spec.sub_groups or spec.topology is not None or job.fit_errors:
            return None
        if job.counts[TaskStatus.ALLOCATED]:
            return None
        tasks = self._tasks_of(job)
        nominated = session.snapshot.tasks.nominated
        if not tasks or nominated[tasks[-1]]:
            return None
        task, alike = session.class_of(tasks[-1]), len(tasks)
        if nominated[tasks].any() or not session.share_class(tasks):
            differs = (n for n, row in enumerate(reversed(tasks)) if nominated[row] or session.class_of(row) is not task)
            alike = next(differs, alike)
        found = self._known[job.row] = _Waiting(job, tasks, task, alike)
        return found

    def _go_round(self, first: _Waiting, others: JobHeap) -> bool:
        """The first job and those behind it, one task each, up to the place to which one of them is expected to fall. Their tasks are
        of one class, or of classes that mix."""
        session = self._session
        behind = others.pop_first(self._most - 1)
        entries = [(others.popped, first.job), *behind]
        waiting = self._in_one_run(first, entries)
        if len(waiting) == 1:
            others.push_all(behind)
            return self._alone()
        classes = [each.task for each in waiting]
        kinds = {task.number for task in classes}
        mixed = len(kinds) > 1 and self._room_for_all(first.job, classes)
        nodes = self._runs.choose([session.view(kind) for kind in classes]) if mixed else self._choose_run(first.job, classes)
        if mixed:
            self._weigh(len(nodes), len(waiting), len(kinds))
        asked, waiting = len(waiting), waiting[: len(nodes)]
        jobs = [each.job for each in waiting]
        statement, keys = session.statement(), list[Any]()
        if nodes and not statement.allocate_each(jobs, [each.tasks[-1] for each in waiting], nodes, classes[: len(jobs)]):
            keys = self._keys_in_order(entries, jobs, waiting)
            statement.keep_each(len(keys))
            if not self._holds(waiting[: len(keys)]):
                keys.clear()
                statement.keep_each(0)
        if not keys:
            others.push_all(behind)
            return self._failed(asked)
        statement.commit()
        if mixed:
            self._runs.placed(nodes[: len(keys)])
        self._learn_steps(entries, keys, classes)
        moved = [(key, each.job) for key, each in zip(keys, waiting) if self._took_turn(each)]
        others.push_all([*moved, *entries[len(keys) :]])
        self._stays_first = len(keys) == 1 and len(jobs) > 1
        return self._succeeded(len(keys))

    def _in_one_run(self, first: _Waiting, entries: Sequence[Entry]) -> list[_Waiting]:
        """The jobs at the front that may have a turn in one run."""
        waiting, last = [first], first.task
        mixes, asked = not self._unmixed and self._may_mix(last), {last.number}
        self._unmixed = max(self._unmixed - 1, 0)
        falls_to = self._expected(last, entries[0][0])
        for key, job in entries[1:]:
            if key > falls_to and key[:_TIE_BREAK] != entries[0][0][:_TIE_BREAK]:
                break
            found = self._known.get(job.row) or self._look(job)
            if found is None:
                break
            task = found.task
            if task is not last:
                if task.number not in asked:
                    if not (mixes and self._may_mix(task) and self._may_run(task)):
                        break
                    asked.add(task.number)
                    falls_to = min(falls_to, self._expected(task, key))  # jobs behind with such tasks fall no less
                last = task
            waiting.append(found)
        return waiting

    def _expected(self, task: TaskClass, key: Any) -> tuple[Any, ...]:
        """Where the job with this key is expected to fall with one more task: the parts of its key. Just behind jobs with the same
        key, if nothing is known."""
        parts: tuple[Any, ...] = key[:_TIE_BREAK]
        step = self._steps.get(task.number, ())
        return tuple(part + more for part, more in zip(parts, step)) if len(step) == len(parts) else parts

    def _keys_in_order(self, entries: Sequence[Entry], jobs: Sequence[Job], waiting: Sequence[_Waiting]) -> list[Any]:
        """The keys of the jobs after their turns, as far as plain turns would have had them in this order: until a job that had its
        turn comes before the next one again."""
        keys: list[Any] = self._session.job_orders(jobs)
        lowest: Any = None
        for number, (entry, key, each) in enumerate(zip(entries, keys, waiting)):
            if lowest is not None and lowest < entry[0]:
                return keys[:number]
            if len(each.tasks) > 1 and (lowest is None or key < lowest):
                lowest = key
        return keys

    def _learn_steps(self, entries: Sequence[Entry], keys: Sequence[Any], classes: Sequence[TaskClass]) -> None:
        last = {task.number: number for number, task in enumerate(classes[: len(keys)])}
        for kind, number in last.items():
            self._steps[kind] = _difference(entries[number][0][:_TIE_BREAK], keys[number][:_TIE_BREAK])

    def _took_turn(self, waiting: _Waiting) -> bool:
        """Count a turn of a job. False: nothing is left of it."""
        if not waiting.ready:
            waiting.ready = True
            self._session.tried[waiting.job.key] = None
        waiting.tasks.pop()
        waiting.alike -= 1
        if not waiting.alike:
            del self._known[waiting.job.row]
        return bool(waiting.tasks)

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
        self._known.pop(job.row, None)
        nodes = self._choose(job, task, len(chosen))
        statement = session.statement(trial=True)
        placed = bool(nodes) and not statement.allocate(job, chosen[: len(nodes)], nodes, task)
        if placed and session.overused(job.queue) is None and session.job_ready(job):
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

    def _holds(self, waiting: Sequence[_Waiting]) -> bool:
        """Whether each job is ready after its turn, and the queue may go on after the last one."""
        session = self._session
        return session.overused(waiting[0].job.queue) is None and all(each.ready or session.job_ready(each.job) for each in waiting)

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
