"""The policy that clients show and explain with: that of the running scheduler, which publishes it, unless the user names another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from navarch.apis.dialect import Settings
from navarch.engine.policy import Policy, PolicyError, load
from navarch.engine.registry import Registry
from navarch.ingest.settings import settings_for
from navarch.offline.policies import read_policy
from navarch.views.published_state import Parameters, PublishedState, document_hash

FALLBACK = "navarch"
"""The preset of clients where no scheduler publishes its policy."""


@dataclass(frozen=True)
class RunningPolicy:
    policy: Policy
    parameters: Parameters
    scheduler_names: Sequence[str]
    """The names that the running scheduler serves; empty: unknown."""
    notes: Sequence[str]
    """What the user should know about the choice."""
    is_another: bool = False
    """The policy that runs cannot be read here, and this one is shown instead."""
    shares_are_published: bool = False
    """The shares of queues that the scheduler publishes are right, and those that clients would compute are not: the policy cannot be
    read here, or it weighs what queues held over time."""

    def node_pool(self, label_key: str, label_value: str) -> tuple[str, str]:
        """The label and its value: what the user gives, else what the running scheduler was given."""
        if label_key:
            return label_key, label_value
        return self.parameters.node_pool_label_key, self.parameters.partition_label_value

    def settings(self, scheduler_names: Sequence[str] | None = None, namespace_as_queue: bool = False) -> Settings:
        """How objects are read: by the options of the user or of the running scheduler."""
        as_queue = namespace_as_queue or self.parameters.namespace_as_queue
        return settings_for(self.policy, scheduler_names, as_queue, *self.node_pool("", ""))


def running_policy(given: str | Path | None, state: PublishedState | None, registry: Registry) -> RunningPolicy:
    """`given` is the option --policy. Raises PolicyError if that one cannot be read."""
    if state is None:
        return RunningPolicy(read_policy(given or FALLBACK, registry), Parameters(), (), ())
    names, running = tuple(state.scheduler_names), state.policy
    if given:
        policy = read_policy(given, registry)
        notes = []
        same = document_hash(policy.document) == running.hash
        if not same:
            notes.append(f"--policy {given} differs from the policy that runs ({running.name}, hash {running.hash})")
        return RunningPolicy(policy, state.parameters, names, notes, shares_are_published=same and bool(policy.usage))
    try:
        policy = load(running.document, registry.catalogue(), running.name)
        return RunningPolicy(policy, state.parameters, names, (), shares_are_published=bool(policy.usage))
    except PolicyError as error:
        note = (
            f"the policy that runs ({running.name}) cannot be read here: {error.mistakes[0]}; shown is the preset {FALLBACK}, with "
            "the shares and places that the scheduler publishes. --plugin-dir names its plugins, --policy another policy"
        )
        return RunningPolicy(read_policy(FALLBACK, registry), state.parameters, names, (note,), True, True)
