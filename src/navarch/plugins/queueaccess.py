"""Queue access: a queue takes jobs only of the namespaces that it names.

A pod or group chooses its queue by a label or a field that its own author writes. With this plugin the queue has a word in it:

    metadata:
      annotations:
        navarch.io/namespaces: "team-a, team-b"
        navarch.io/namespace-selector: "team=vision,env=prod"

A namespace may use the queue if the list names it, or if it has all labels of the selector. A queue that says neither asks its
parent, and so on up to the top; where no queue on the way says anything, every namespace may use it, or none with
`unnamedQueues: closed`. An annotation that cannot be read closes its queue. Pods that run already are left alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from navarch.engine.arguments import Argument
from navarch.engine.job import Job
from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import Vote
from navarch.engine.queue import Queue
from navarch.engine.reasons import Event, Reason
from navarch.model.label_syntax import key_complaints, value_complaints

NAMESPACES = "navarch.io/namespaces"
SELECTOR = "navarch.io/namespace-selector"
OPEN, CLOSED = "open", "closed"
_UNDONE_BY = (Event.QUEUE_CHANGED, Event.JOB_CHANGED)


class Access(Struct, frozen=True):
    """What a queue says of the namespaces that may use it."""

    namespaces: frozenset[str] = frozenset()
    labels: Mapping[str, str] | None = None
    """Labels that a namespace must have; None: the queue has no selector."""
    mistake: str = ""

    def admits(self, namespace: str, labels: Mapping[str, str]) -> bool:
        if self.mistake:
            return False
        chosen = self.labels is not None and all(labels.get(key) == value for key, value in self.labels.items())
        return chosen or namespace in self.namespaces

    def __str__(self) -> str:
        if self.mistake:
            return self.mistake
        parts = [f"namespaces {', '.join(sorted(self.namespaces))}"] if self.namespaces else []
        if self.labels is not None:
            parts.append(f"namespaces with labels {', '.join(f'{key}={value}' for key, value in sorted(self.labels.items()))}")
        return f"it takes jobs of {' and of '.join(parts) or 'no namespace'}"


def read_access(queue: Queue) -> Access | None:
    """None: the queue says nothing.

    >>> from navarch.model.cluster import Cluster
    >>> from navarch.model.spec import QueueSpec
    >>> str(read_access(Queue(0, QueueSpec("q", annotations={NAMESPACES: "b, a"}), Cluster().snapshot().jobs, None)))
    'it takes jobs of namespaces a, b'
    """
    annotations = queue.spec.annotations
    if NAMESPACES not in annotations and SELECTOR not in annotations:
        return None
    names = frozenset(name.strip() for name in annotations.get(NAMESPACES, "").split(",")) - {""}
    if SELECTOR not in annotations:
        return Access(names)
    labels: dict[str, str] = {}
    for part in annotations[SELECTOR].split(","):
        key, sign, value = (text.strip() for text in part.partition("="))
        if not sign or key_complaints(key) or value_complaints(value):
            return Access(mistake=f"its annotation {SELECTOR} has {part.strip()!r}, expected label=value")
        labels[key] = value
    return Access(names, labels)


class QueueAccess(Plugin):
    """Refuses jobs of namespaces that their queue does not name"""

    name = "queueaccess"
    arguments = (
        Argument("unnamedQueues", "str", OPEN, "whether queues that name no namespace are open or closed to all", (OPEN, CLOSED)),
    )

    def open(self) -> None:
        self._access: dict[str, Access | None] = {}

    def access(self, queue: Queue) -> Access | None:
        """What the queue says, or the nearest queue above it; None: nothing forbids anything."""
        if queue.name not in self._access:
            found = (read_access(each) for each in (queue, *queue.ancestors))
            otherwise = Access() if self.given.text("unnamedQueues") == CLOSED else None
            self._access[queue.name] = next((each for each in found if each is not None), otherwise)
        return self._access[queue.name]

    def job_valid(self, job: Job) -> Reason | None:
        access = self.access(job.queue)
        if access is None:
            return None
        namespace = job.spec.namespace
        known = self.session.snapshot.namespaces.get(namespace)
        if access.admits(namespace, known.labels if known is not None else {}):
            return None
        text = f"namespace {namespace} may not use queue {job.queue.name}: {access}"
        return Reason("QueueNotPermitted", text, figures={"queue": job.queue.name, "namespace": namespace}, undone_by=_UNDONE_BY)

    def job_enqueueable(self, job: Job) -> Vote | Reason:
        return self.job_valid(job) or Vote.ABSTAIN
