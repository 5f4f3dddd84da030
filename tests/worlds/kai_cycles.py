"""Cycles of random KAI clusters, run until nothing changes."""

from __future__ import annotations

from hypothesis import strategies as st
from tests.worlds.random_kai_clusters import KaiWorld

from navarch.engine.policy import PRESETS, load
from navarch.engine.policy.values import Policy
from navarch.engine.session import Session
from navarch.installed import installed

SEEDS = st.integers(0, 1_000_000)


NOW = 1e6


def policy(compat: str) -> Policy:
    return load({**PRESETS["kai"], "compat": compat}, installed().catalogue(), "test")


STRICT, KAI = policy("strict"), policy("kai")


def finished(world: KaiWorld, chosen: Policy) -> Session:
    """A session after all of its actions."""
    session = Session(world.cluster.snapshot(), chosen, installed(), NOW)
    for name in chosen.actions:
        action = installed().action(name, chosen.dialect)
        assert action is not None
        session.action = name
        action(session).execute()
    return session
