"""Volcano's HTTP extender: a server outside takes part in a cycle.

Each `extender.*Verb` switches one kind of question on and names its path below `extender.urlPrefix`. Requests are POSTs of JSON with
Volcano's field names (`bodies`). The cycle itself sends nothing: it stops at a question, and the shell asks and runs it again
(`engine/points/conversation.py`).

Pods that are alike share one question, and what was answered is used for the rest of the cycle. A server that does not
answer, or answers wrongly, refuses what it was asked about, with a Reason; with `extender.ignorable` the cycle goes on without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from navarch.engine.arguments import Argument, Arguments, WrongKind
from navarch.engine.job import Job
from navarch.engine.node_functions import NodeFilter, NodeScorer, TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.points.conversation import Server
from navarch.engine.points.protocols import (
    AllocateEvents,
    Change,
    JobEnqueueable,
    JobEnqueued,
    JobReady,
    NodeFilters,
    NodeScorers,
    Overused,
    Preemptable,
    Reclaimable,
    Vote,
)
from navarch.engine.queue import Queue
from navarch.engine.reasons import Event, Reason
from navarch.model.resources import IntArray
from navarch.model.status import TaskStatus
from navarch.plugins.volcano.extender.answers import (
    LONGEST,
    EventAnswer,
    OverusedAnswer,
    ReadyAnswer,
    VictimsAnswer,
    VoteAnswer,
    read,
)
from navarch.plugins.volcano.extender.bodies import job_info, queue_info, session_info, task_info
from navarch.plugins.volcano.extender.node_functions import ExtenderPredicate, ExtenderScorer, Scores

_AGAIN = (Event.TIME_PASSED, Event.POD_REMOVED, Event.NODE_CHANGED)
_POINTS = {
    "predicate": (NodeFilters,),
    "prioritize": (NodeScorers,),
    "preemptable": (Preemptable,),
    "reclaimable": (Reclaimable,),
    "queueOverused": (Overused,),
    "jobEnqueueable": (JobEnqueueable,),
    "jobEnqueued": (JobEnqueued,),
    "jobReady": (JobReady,),
}
"""Verb -> the points at which the plugin speaks only if the verb is set."""


def _names(value: list[Any]) -> None:
    if not all(isinstance(each, str) for each in value):
        raise WrongKind(f"found {value!r}, expected names of resources")


def _verb(name: str, doc: str) -> Argument:
    return Argument(name, "str", "", doc)


class Extender(Plugin):
    """Asks an HTTP server of your own for filters, scores, victims and admissions"""

    name = "extender"
    arguments = (
        Argument("extender.urlPrefix", "str", "", "URL of the server, such as http://127.0.0.1:8080/scheduler"),
        Argument("extender.httpTimeout", "duration", 1.0, "how long one answer may take", minimum=0),
        Argument("extender.ignorable", "bool", False, "whether the cycle goes on without answers of a server that fails"),
        Argument("extender.managedResources", "list", None, "ask only about pods that request one of these", check=_names),
        _verb("extender.onSessionOpenVerb", "told of every job, node and queue when a cycle opens"),
        _verb("extender.onSessionCloseVerb", "told that the cycle ends"),
        _verb("extender.predicateVerb", "whether a pod may go to a node"),
        _verb("extender.prioritizeVerb", "scores of the nodes that a pod may go to"),
        _verb("extender.preemptableVerb", "which pods of the same queue may be evicted for a pod"),
        _verb("extender.reclaimableVerb", "which pods of other queues may be evicted for a pod"),
        _verb("extender.queueOverusedVerb", "whether a queue has its share already"),
        _verb("extender.jobEnqueueableVerb", "whether a job is admitted"),
        _verb("extender.jobEnqueuedVerb", "told of each job that is admitted"),
        _verb("extender.jobReadyVerb", "whether a job has enough pods to start"),
        _verb("extender.allocateFuncVerb", "told of each pod that gets a node; may refuse it"),
        _verb("extender.deallocateFuncVerb", "told of each pod that loses its node"),
    )

    @staticmethod
    def asked_servers(given: Arguments) -> Sequence[str]:
        return [given.text("extender.urlPrefix")]

    def open(self) -> None:
        session, given = self.session, self.given
        self.server = Server(given.text("extender.urlPrefix"), given.number("extender.httpTimeout") or 1.0)
        self.ignorable = given.flag("extender.ignorable")
        managed = given["extender.managedResources"]
        self.managed = frozenset(managed) if isinstance(managed, list) else frozenset()
        self.scores = Scores(self)
        self.state_of_node: IntArray = np.zeros(len(session.nodes), dtype=np.int64)
        """By node: how often something on it has changed."""
        self._answered: dict[Any, Any] = {}
        self.failed_open = ""
        if self.verb("onSessionOpen"):
            (answer,) = session.conversation.ask(self.server, self.verb("onSessionOpen"), 1, lambda _: session_info(session))
            self.failed_open = "" if self.ignorable else answer.error
        silent = [verb for verb in _POINTS if not self.verb(verb)]
        if not session.conversation.asks:
            silent, self.failed_open = list(_POINTS), ""
            session.stop_asking(self, AllocateEvents)
        for verb in silent:
            session.stop_asking(self, *_POINTS[verb])

    def verb(self, name: str) -> str:
        return self.given.text(f"extender.{name}Verb")

    def interested(self, task: TaskClass) -> bool:
        return self._manages(task.task)

    def _manages(self, row: int) -> bool:
        if not self.managed:
            return True
        shape = self.session.task(row).shape
        return any(name in self.managed for name, _ in shape.requests)

    def _ask(self, verb: str, body: Any, kind: type[Any]) -> Any:
        """The answer, or a text that says why there is none."""
        (answer,) = self.session.conversation.ask(self.server, self.verb(verb), 1, lambda _: body())
        return read(answer, kind)

    def _once(self, key: Any, verb: str, body: Any, kind: type[Any]) -> Any:
        """The same question is asked once."""
        if key not in self._answered:
            self._answered[key] = self._ask(verb, body, kind)
        return self._answered[key]

    # nodes

    def pre_predicate(self, task: TaskClass) -> Reason | None:
        """Refuses every pod after a failed opening, unless failures are ignored."""
        if not self.failed_open or not self.interested(task):
            return None
        return self._failure("open the cycle", self.failed_open)

    def node_filters(self) -> list[NodeFilter]:
        return [ExtenderPredicate(self)]

    def node_scorers(self) -> list[NodeScorer]:
        return [ExtenderScorer(self)]

    # events

    def on_allocate(self, change: Change) -> None:
        self.state_of_node[list(change.nodes)] += 1
        if not self.verb("allocateFunc") or not self.interested(change.task):
            return
        session, tasks = self.session, change.tasks
        answers = session.conversation.ask(
            self.server, self.verb("allocateFunc"), len(tasks), lambda i: {"task": task_info(session, tasks[i])}
        )
        for task, answer in zip(tasks, answers, strict=True):
            found = read(answer, EventAnswer)
            if isinstance(found, str):
                error = "" if self.ignorable else found
            else:
                error = (found.error_message or "")[:LONGEST]
            if error and not change.undone:
                session.vetoed[task] = Reason("ExtenderRefused", f"the extender refuses the placement: {error}", undone_by=_AGAIN)

    def on_deallocate(self, change: Change) -> None:
        self.state_of_node[list(change.nodes)] += 1
        if not self.verb("deallocateFunc") or not self.interested(change.task):
            return
        for task, node in zip(change.tasks, change.nodes, strict=True):
            status = TaskStatus(int(self.session.status[task]))
            body = {"task": task_info(self.session, task, node, status)}
            self.session.conversation.tell(self.server, self.verb("deallocateFunc"), body)

    # jobs and queues

    def job_enqueueable(self, job: Job) -> Vote | Reason:
        found = self._once(("admit", job.row), "jobEnqueueable", lambda: {"job": job_info(self.session, job)}, VoteAnswer)
        if isinstance(found, str):
            return Vote.PERMIT if self.ignorable else self._failure("admit the job", found)
        status = found.status or 0
        if status < 0:
            return Reason("ExtenderRefused", "the extender does not admit the job", undone_by=_AGAIN)
        return Vote.PERMIT if status else Vote.ABSTAIN

    def job_enqueued(self, job: Job) -> None:
        self.session.conversation.tell(self.server, self.verb("jobEnqueued"), {"job": job_info(self.session, job)})

    def overused(self, queue: Queue) -> Reason | None:
        found = self._once(("overused", queue.name), "queueOverused", lambda: {"queue": queue_info(queue)}, OverusedAnswer)
        if isinstance(found, str):
            return None if self.ignorable else self._failure("say whether the queue has its share", found)
        text = f"the extender says that queue {queue.name} has its share"
        return Reason("QueueOverused", text, undone_by=_AGAIN) if found.overused else None

    def job_ready(self, job: Job) -> bool:
        key = ("ready", job.row, job.ready_count)
        found = self._once(key, "jobReady", lambda: {"job": job_info(self.session, job)}, ReadyAnswer)
        if isinstance(found, str):
            if not self.ignorable:
                job.refuse(self._failure("say whether the job is ready", found))
            return self.ignorable
        if not found.status:
            job.refuse(Reason("ExtenderRefused", "the extender says that the job is not ready", undone_by=_AGAIN))
        return bool(found.status)

    def _failure(self, task: str, error: str) -> Reason:
        return Reason("ExtenderFailed", f"the extender did not {task}: {error}", undone_by=(Event.TIME_PASSED,))

    # victims

    def preemptable(self, preemptor: int, candidates: Sequence[int]) -> list[int] | None:
        return self._victims("preemptable", preemptor, candidates)

    def reclaimable(self, reclaimer: int, candidates: Sequence[int]) -> list[int] | None:
        return self._victims("reclaimable", reclaimer, candidates)

    def _victims(self, verb: str, evictor: int, candidates: Sequence[int]) -> list[int] | None:
        session = self.session
        if not self._manages(evictor):
            return None
        found = self._ask(
            verb,
            lambda: {"evictor": task_info(session, evictor), "evictees": [task_info(session, row) for row in candidates]},
            VictimsAnswer,
        )
        if isinstance(found, str):
            return None if self.ignorable else []
        if not found.status:
            return None
        named = found.uids
        return [row for row in candidates if session.task(row).uid in named]

    def close(self) -> None:
        if self.verb("onSessionClose"):
            self.session.conversation.tell(self.server, self.verb("onSessionClose"), {})
