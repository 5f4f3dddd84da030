"""Finds the object that a path names, or says what is spelt alike."""

from __future__ import annotations

from navarch.explanation.names import near
from navarch.web.api.context import Context
from navarch.web.errors import not_found
from navarch.web.security.viewer import Viewer
from navarch.web.tables.jobs import ID, NAME, NAMESPACE, STATE, Row


def find_job(context: Context, viewer: Viewer, namespace: str, name: str) -> Row:
    """By its id, or by namespace and name. Of several jobs with one name, one that waits goes first."""
    rows = context.state.jobs.rows
    if viewer.sees(namespace):
        found = rows.get(f"{namespace}/{name}")
        if found is not None:
            return found
        alike = [row for row in rows.values() if row[NAMESPACE] == namespace and row[NAME] == name]
        if alike:
            return min(alike, key=lambda row: (row[STATE] != "waiting", row[ID]))
    known = sorted(f"{row[NAMESPACE]}/{row[NAME]}" for row in rows.values() if viewer.sees(row[NAMESPACE]))
    raise not_found(f"there is no job {namespace}/{name} among {len(known)} jobs", near(f"{namespace}/{name}", known))


def find_queue(context: Context, viewer: Viewer, name: str) -> str:
    seen = context.queues_seen(viewer)
    known = sorted(each for each in context.state.queues.rows if seen is None or each in seen)
    if name not in known:
        raise not_found(f"there is no queue {name!r} among {len(known)} queues", near(name, known))
    return name


def find_node(context: Context, name: str) -> str:
    if not context.state.nodes.exists(name):
        known = context.state.nodes.names()
        raise not_found(f"there is no node {name!r} among {len(known)} nodes", near(name, known))
    return name
