"""A session for a recorded case of KAI: its objects through the dialect, its configuration through the policy loader."""

from __future__ import annotations

import datetime
from typing import Any

from navarch.apis.dialect import Settings
from navarch.engine.policy import load
from navarch.engine.policy.values import Policy
from navarch.engine.session import Session
from navarch.installed import installed
from navarch.offline.inventory import Inventory
from navarch.offline.manifests import Document

Case = dict[str, Any]


def policy_document(case: Case) -> dict[str, Any]:
    return {"compat": "kai", "actions": ", ".join(case["actions"]), **case["conf"]}


def policy_of(case: Case) -> Policy:
    return load(policy_document(case), installed().catalogue(), "policy")


def moment_of(case: Case) -> float:
    return datetime.datetime.fromisoformat(case["now"]).timestamp()


def session_of(case: Case) -> Session:
    inventory = Inventory([Document(manifest) for manifest in case["objects"]], Settings(imply_queues=False))
    assert not inventory.mistakes
    cluster = inventory.cluster
    return Session(cluster.snapshot(), policy_of(case), installed(), moment_of(case))
