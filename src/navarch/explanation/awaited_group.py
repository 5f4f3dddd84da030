"""What `navarch explain` says of a job whose pods wait for KAI's pod grouper in a cluster. A cycle over objects does not wait."""

from __future__ import annotations

from navarch.apis.kai.awaited_groups import AwaitedGroups, awaited_text
from navarch.explanation.explain import Reading
from navarch.ingest.groups import is_shadow, shown_key


def waits_for_group(read: Reading, job: str, *, installed: bool) -> list[str]:
    """`job` as users see it. `installed`: whether KAI's kind Config is served."""
    inventory, awaited = read.run.inventory, AwaitedGroups(lambda: read.run.now, lambda: installed)
    for group in inventory.jobs.values():
        awaited.group_seen(group)
    pods = [pod for pod in inventory.tasks.values() if is_shadow(pod.job) and not pod.node]
    waiting = [pod for pod in pods if awaited.awaits(pod)]
    since = min((pod.created for pod in waiting if shown_key(pod.job) == job and awaited.awaits(pod)), default=None)
    return [] if since is None else [f"the running scheduler: {awaited_text(since)}"]
