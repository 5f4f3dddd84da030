"""Questions of a cycle to servers outside, and their answers.

A cycle is a pure function, so it sends nothing itself. A plugin calls `session.conversation.ask`. If the answer is not among the
exchanges that the cycle was given, `decide` stops and returns the question. The shell asks, and runs the cycle again with one exchange
more. The same snapshot and the same exchanges give the same questions in the same order, so exchanges are used by position. They are
recorded with the cycle, which therefore replays without any server.

A notice is a request whose answer changes nothing. The cycle does not stop for it: notices travel with the next question, and the last
ones with the record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field


class Server(Struct, frozen=True):
    """A server that plugins ask. `tls`: files and settings of the connection, as kube-scheduler names them."""

    url: str
    timeout: float = 1.0
    tls: Mapping[str, Any] = field(default_factory=dict)


def not_asked(url: str) -> str:
    """What a command says that runs cycles and does not ask the server."""
    return f"extender {url} is not asked here: cycles are decided as if it had no objection"


class Manifest(Struct, frozen=True):
    """Stands in a body for an API object, which the shell puts in. `changes`: (path, value) of fields that the cycle has changed."""

    kind: str
    namespace: str
    name: str
    changes: tuple[tuple[str, Any], ...] = ()
    bare: bool = False
    """Without `kind` and `apiVersion`."""
    uid: str = ""


class Request(Struct, frozen=True):
    """One POST: the path below the URL of the server, and the body, which may contain `Manifest`s."""

    verb: str
    body: Any


class Notice(Struct, frozen=True):
    server: Server
    request: Request


class Question(Struct, frozen=True):
    """Requests to one server that may be sent at the same time, after the notices."""

    server: Server
    requests: tuple[Request, ...]
    notices: tuple[Notice, ...] = ()
    attempt: int = 0


class Answer(Struct, frozen=True, array_like=True):
    """The body of an answer, or why there is none."""

    body: str = ""
    error: str = ""


class Exchange(Struct, frozen=True, array_like=True):
    """The answers to one question, in the order of its requests. `attempt`: how often the cycle had started again (`containment`)."""

    attempt: int
    verb: str
    answers: tuple[Answer, ...]


def failed(question: Question, error: str) -> Exchange:
    """The exchange of a question that is not asked."""
    return Exchange(question.attempt, question.requests[0].verb, (Answer(error=error),) * len(question.requests))


class Unanswered(BaseException):  # not an Exception: no rule may catch it, and no job is to blame
    """Stops a cycle at a question."""

    def __init__(self, question: Question) -> None:
        super().__init__(question.server.url)
        self.question = question


NOT_ASKED = "servers outside are not asked here"


class Conversation:
    """`exchanges` None: there is no shell that would ask, and every question fails."""

    def __init__(self, exchanges: Sequence[Exchange] | None = None, attempt: int = 0) -> None:
        self.asks = exchanges is not None
        """False: a plugin should do without the servers that it would ask."""
        self._attempt = attempt
        self._known = [each for each in exchanges or () if each.attempt == attempt]
        self._next = 0
        self.notices: list[Notice] = []
        """Those since the last question."""

    def ask(self, server: Server, verb: str, count: int, body: Callable[[int], Any]) -> tuple[Answer, ...]:
        """Ask `count` things at once: `body(i)` is the body of each request. Bodies are made only if the answers are not known."""
        if not count:
            return ()
        if not self.asks:
            return (Answer(error=NOT_ASKED),) * count
        if self._next < len(self._known):
            found = self._known[self._next]
            if found.verb == verb and len(found.answers) == count:
                self._next += 1
                self.notices.clear()
                return found.answers
            error = (
                f"the recorded exchange {self._next} answers {len(found.answers)} times {found.verb}, expected {count} times {verb}"
            )
            return (Answer(error=error),) * count
        requests = tuple(Request(verb, body(number)) for number in range(count))
        raise Unanswered(Question(server, requests, tuple(self.notices), self._attempt))

    def tell(self, server: Server, verb: str, body: Any) -> None:
        """Send something whose answer changes nothing."""
        if self.asks:
            self.notices.append(Notice(server, Request(verb, body)))
