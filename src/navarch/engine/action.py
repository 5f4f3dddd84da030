"""What every action is: a step of the cycle, run in the order that the policy names."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from navarch.engine.arguments import Argument, Arguments

if TYPE_CHECKING:
    from navarch.engine.session import Session


class Action:
    """Subclasses say their `name`, declare what they may be told, and do their work in `execute`."""

    name: ClassVar[str]
    dialect: ClassVar[str] = ""
    arguments: ClassVar[tuple[Argument, ...]] = ()
    starts_gangs: ClassVar[bool] = False
    """Whether it starts a job as a whole, whatever plugins say of when it is ready."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.given = Arguments(self.arguments, session.policy.configurations.get(self.name, {}))

    def execute(self) -> None:
        """Decide, through statements alone."""
