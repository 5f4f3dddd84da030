"""The base class of plugins: a name, declared arguments, and calls when a session opens and closes.

A plugin object lives for one session, which is one cycle unless the plugin has `next_cycle`. It implements extension points by having
their methods (`points/protocols.py`), and must not import other plugins. A few lines make one:

    class Oldest(Plugin):
        name = "oldest"

        def job_order(self, job):
            return job.spec.created

It sees the cluster through `self.session`: `queues`, `all_jobs()`, `task(row)`, `nodes` (figures as columns, `nodes.specs` the
objects), `total`, and `now`, the time of the cycle in seconds since the epoch. It must not read a clock, because a recorded cycle
would then not replay. The fields of objects are in `model/spec.py`: `job.spec`, `queue.spec`, `session.task(row)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from navarch.engine.arguments import Argument, Arguments
from navarch.engine.points.bind_hooks import BindHooks
from navarch.engine.policy.values import PluginOption

if TYPE_CHECKING:
    from navarch.engine.node_functions import TaskClass
    from navarch.engine.session import Session


class Plugin:
    """Subclass it. `navarch policy plugins` prints the first line of the docstring."""

    name: ClassVar[str]
    """The name in policy files."""
    dialect: ClassVar[str] = ""
    """Set where two systems have different plugins of one name: the system whose files mean this one."""
    arguments: ClassVar[tuple[Argument, ...]] = ()
    """The arguments that a policy file may set; `self.given` has their values."""

    live: ClassVar[type[BindHooks] | None] = None
    """Hooks around the binding of a pod in a live cluster (`points/bind_hooks.py`)."""

    says_scheduled: ClassVar[bool] = False
    """Whether its `close` sets the condition Scheduled on every ready job. The session then also includes ready jobs without it."""

    waits_for_room: ClassVar[bool] = False
    """Whether a job that its rules refuse stays refused until some node gains room, and equal jobs are refused equally. The
    simulator leaves out cycles that cannot start anything where all plugins of a policy say so."""
    turns_in_one_step: ClassVar[bool] = False
    """Whether all of this holds while jobs get tasks:

    - the key of a job depends on that job alone and does not fall;
    - a ready job stays ready, and an overused queue stays overused;
    - limits of queues are by resource.

    `allocate` then takes the turns of equal jobs in one step (`actions/equal_turns.py`), with the same decisions."""
    keeps_order: ClassVar[bool] = False
    """Whether nothing behind the first waiting job of a queue may start before it (see `JobTurn`)."""
    makes_promises: ClassVar[bool] = False
    """Whether waiting jobs are promised room that jobs of any queue may not take. Live cycles then try again what failed."""

    def __init__(self, session: Session, option: PluginOption) -> None:
        self.session = session
        self.option = option
        self.given = Arguments(self.arguments, option.arguments)

    @staticmethod
    def asked_servers(given: Arguments) -> Sequence[str]:
        """URLs of the servers that it asks in a cycle (`points/conversation.py`). Commands that do not ask name them."""
        return ()

    def undo_leaves_trace(self, task: TaskClass) -> bool:
        """Whether the plugin answers differently after a placement of such a task was undone. `allocate` then tries nothing for it
        that it may have to undo (`actions/equal_turns.py`)."""
        return False

    def before_open(self) -> None:
        """Called once, in policy order, before any plugin opens: for facts of the cluster that plugins read when they open."""

    def open(self) -> None:
        """Called once, in policy order, before node functions are asked for and before the first action."""

    def after_open(self) -> None:
        """Called once, in policy order, when all plugins are open and the node functions are known: classes of tasks may be asked
        for from here on."""

    def next_cycle(self) -> bool:
        """Called where the plugin may go on in a further cycle with the same session, instead of being opened anew
        (`kept_session.py`). It must forget what belongs to the last cycle. True: everything else that it keeps follows from the
        policy, the specs of nodes and queues, the shapes and the other objects, which are the same. So do the answers of its filters
        and scores, which are computed again only for nodes whose figures changed: they must not read the time. False, as in plugins
        without this method: a new session is opened."""
        return False

    def close(self) -> None:
        """Called once, in policy order, after the last action and before conditions are written."""
