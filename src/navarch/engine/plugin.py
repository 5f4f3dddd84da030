"""What every plugin is: a name, declared arguments, and a word when a session opens and closes.

A plugin object lives for one session. It implements extension points by having their methods (`extension_points`), and
must not know other plugins. Twenty lines make one:

    class Oldest(Plugin):
        name = "oldest"

        def job_order(self, job):
            return job.spec.created
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from navarch.engine.arguments import Argument, Arguments
from navarch.engine.policy.values import PluginOption

if TYPE_CHECKING:
    from navarch.engine.session import Session


class Plugin:
    name: ClassVar[str]
    dialect: ClassVar[str] = ""
    """Set where two systems have different plugins of one name: whose files mean this one."""
    arguments: ClassVar[tuple[Argument, ...]] = ()

    def __init__(self, session: Session, option: PluginOption) -> None:
        self.session = session
        self.option = option
        self.given = Arguments(self.arguments, option.arguments)

    def open(self) -> None:
        """Called once, in policy order, before the first action."""

    def close(self) -> None:
        """Called once, in policy order, after the last action and before conditions are written."""
