"""Every queue's fair share at the start of each recorded cycle, from the cluster's objects alone."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from tests.parity.kai_counts import CYCLES, has_shares
from tests.parity.recorded import recorded_cases

from navarch.apis.dialect import Settings
from navarch.engine.policy import load
from navarch.engine.session import Session
from navarch.installed import installed
from navarch.offline.inventory import Inventory
from navarch.offline.manifests import Document
from navarch.plugins.kai.amounts import RESOURCES
from navarch.plugins.kai.proportion.plugin import KaiProportion

Case = dict[str, Any]
POLICY = {"compat": "kai", "actions": "allocate", "tiers": [{"plugins": [{"name": "proportion"}]}]}


CASES = [case for name in CYCLES for case in recorded_cases(f"kai/{name}.jsonl", has_shares)]


@pytest.mark.parametrize("case", CASES)
def test_fair_shares_at_the_start_of_the_cycle(case: Case) -> None:
    inventory = Inventory([Document(manifest) for manifest in case["objects"]], Settings(imply_queues=False))
    assert not inventory.mistakes
    cluster = inventory.cluster
    registry = installed()
    now = datetime.datetime.fromisoformat(case["now"]).timestamp()
    session = Session(cluster.snapshot(), load(POLICY, registry.catalogue(), "policy"), registry, now)
    plugin = next(plugin for plugin in session.plugins if isinstance(plugin, KaiProportion))
    shares = plugin.tree.share
    found = {f"{name}/{res}": shares[r, row] for name, row in plugin.row.items() for r, res in enumerate(RESOURCES)}
    wanted = {f"{name}/{r}": amount for name, amounts in case["fairShare"].items() for r, amount in amounts.items()}
    assert found == pytest.approx(wanted, abs=1e-5, rel=1e-9)
