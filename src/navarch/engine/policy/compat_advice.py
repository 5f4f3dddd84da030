"""Advice for a file that strict mode refuses and its own system would accept: which `compat` to add.

Existing files hold quoted numbers, arguments of old releases and plugins of one system only. The advice tells their owners
about the mode that reads them.
"""

from __future__ import annotations

from collections.abc import Mapping

from navarch.engine.policy.catalogue import Catalogue
from navarch.engine.policy.compat import PEERS
from navarch.engine.policy.kai_shard import is_shard
from navarch.engine.policy.load import load
from navarch.engine.policy.source import read
from navarch.engine.policy.values import PolicyError


def remedy(document: str | Mapping[str, object], catalogue: Catalogue) -> str:
    """Empty if the document names a compat already, or if none would help."""
    try:
        value = read(document).value
    except PolicyError:
        return ""
    if "compat" in value or is_shard(value):
        return ""
    for compat in ("volcano", "kube-batch") if "tiers" in value else ("kube-batch", "volcano"):
        try:
            policy = load({**value, "compat": compat}, catalogue)
        except PolicyError:
            continue
        count = len(policy.warnings)
        warned = f"with {count} warning{'s' if count > 1 else ''}" if count else "as it is"
        return f"the line `compat: {compat}` would have it read as {PEERS[compat].title} reads it, {warned}"
    return ""
