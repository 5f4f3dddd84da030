"""The session of the last cycle, kept for the next one while only pods and jobs change.

To open a session (plugins, node functions, views of task classes) costs more than to place a job. All of that follows from the policy,
the specs of nodes and queues, the shapes and the other objects. While these stay, the session goes on:

- figures of nodes and views of classes are updated by the log of changed rows, in which the snapshot enters what changed since;
- what belongs to one cycle is set anew (`Session.begin_cycle`);
- each plugin forgets what it learned in the last cycle (`Plugin.next_cycle`). With a plugin that has no such method, every cycle opens
  a new session. Where the method raises, the record has a warning and a new session is opened.

The snapshot hands the session on (`Cluster.snapshot`), so that it meets only the figures that follow those it knows. Decisions are
the same with a new session (tests/properties/test_kept_sessions.py).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from navarch.engine.containment.containment import CycleTimeout
from navarch.engine.containment.culprit import error_text, where_failed
from navarch.engine.plugin import Plugin
from navarch.engine.policy.values import Policy
from navarch.engine.queue import begin_cycle
from navarch.engine.reasons import Reason
from navarch.engine.registry import Registry
from navarch.engine.session import CycleSettings, Session
from navarch.model.snapshot import Snapshot

MOST_LOGGED = 4096
"""Entries of the log after which a new session begins with an empty one."""
MOST_VIEWS = 256
"""Views of classes that a kept session may have: each holds a few columns over all nodes."""


def keep_session(session: Session) -> None:
    """The cycle is over: leave the session for the next one, or drop it."""
    if _may_be_kept(session):
        session.snapshot.session = session
    else:
        session.dissolve()


def _may_be_kept(session: Session) -> bool:
    nodes = session.nodes
    return (
        session.may_be_kept
        and nodes.columns.written is nodes.changed
        and len(nodes.changed) < MOST_LOGGED
        and session.view_count < MOST_VIEWS
        and session.devices is None
        and session.shard is None
        and not session.claimable_dims
    )


def goes_on(kind: type[Plugin]) -> bool:
    """Whether plugins of this class may go on in a further cycle. The class itself must have `next_cycle`: one that inherits it may
    keep more than its base does. A class that checks the answers of a plugin from outside counts as that plugin."""
    base = kind.__mro__[1]
    own = base if vars(base).get("checked_subclass") is kind else kind
    return "next_cycle" in vars(own)


def open_session(
    snapshot: Snapshot,
    policy: Policy,
    registry: Registry,
    now: float,
    settings: CycleSettings,
    *,
    without_preferences: Collection[str],
    guarded: Mapping[str, Reason | None],
) -> Session:
    """The session for a cycle: the kept one where it fits, else a new one."""
    session: Session | None = snapshot.session
    snapshot.session = None
    warnings = list[str]()
    if session is not None:
        if not without_preferences and not guarded and _fits(session, snapshot, policy, registry):
            session.nodes.next_cycle()
            session.begin_cycle(snapshot, now, settings)
            begin_cycle(session.queues, snapshot.jobs)
            if all(_next_cycle(session, plugin, warnings) for plugin in session.plugins):
                return session
        session.dissolve()
    session = Session(snapshot, policy, registry, now, settings, without_preferences=without_preferences, guarded=guarded)
    session.may_be_kept = not without_preferences and not guarded and all(goes_on(type(plugin)) for plugin in session.plugins)
    session.record.warnings += warnings
    return session


def _fits(session: Session, snapshot: Snapshot, policy: Policy, registry: Registry) -> bool:
    """Whether nothing has changed that the session was opened with. Unchanged lists and specs are the same objects."""
    last = session.snapshot
    return (
        last is not snapshot  # the session has written its decisions into the figures of that one
        and session.policy is policy
        and session.selected is registry.select_plugins(policy)
        and session.nodes.columns is snapshot.nodes
        and session.nodes.columns.written is session.nodes.changed  # no other session has begun a log of its own
        and last.shapes is snapshot.shapes
        and last.versions == snapshot.versions
        and last.queues == snapshot.queues
        and last.priority_classes == snapshot.priority_classes
        and last.budgets == snapshot.budgets
        and last.quotas == snapshot.quotas
        and last.namespaces == snapshot.namespaces
    )


def _next_cycle(session: Session, plugin: Plugin, warnings: list[str]) -> bool:
    """Whether the plugin goes on with the session. One that raises does not: a new session asks nothing of its old state."""
    started = session.stopwatch()
    try:
        goes_on = plugin.next_cycle()
    except CycleTimeout:
        raise
    except (Exception, SystemExit) as error:
        warnings.append(f"{where_failed(error)} failed in next_cycle: {error_text(error)}; the cycle opens a new session")
        return False
    session.timings[f"{plugin.name} (open)"] = session.stopwatch() - started
    return goes_on
