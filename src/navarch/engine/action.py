"""The base class of actions. An action is a step of the cycle; the policy gives the order."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from navarch.engine.arguments import Argument, Arguments

if TYPE_CHECKING:
    from navarch.engine.session import Session


class Action:
    """Subclasses set `name`, declare their arguments, and implement `execute`."""

    name: ClassVar[str]
    dialect: ClassVar[str] = ""
    arguments: ClassVar[tuple[Argument, ...]] = ()
    starts_gangs: ClassVar[bool] = False
    """Whether it starts a job only as a whole, independent of the plugins' job readiness."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.given = Arguments(self.arguments, session.policy.configurations.get(self.name, {}))

    def execute(self) -> None:
        """Decide. Tasks are moved only through statements."""
