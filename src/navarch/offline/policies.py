"""The policy of cycles without a cluster: a preset, a file, or the decoded mapping of one."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from weakref import WeakKeyDictionary

import msgspec

from navarch.engine.policy import PRESETS, Mistake, Policy, PolicyError, load
from navarch.engine.registry import Registry
from navarch.offline.manifests import STDIN, stdin_text

DEFAULT_POLICY = "navarch"
_policies: WeakKeyDictionary[Registry, dict[bytes, Policy]] = WeakKeyDictionary()
"""Keyed by the registry itself: its id() may be reused after it is gone."""


def read_policy(policy: str | Path | Mapping[str, object] | Policy | None, registry: Registry, shard: str = "") -> Policy:
    """A policy by preset name, path or mapping; None: preset `navarch`. `shard`: which SchedulingShard of KAI is meant.

    Equal mappings are read once: tests and trials make thousands of small plans."""
    if isinstance(policy, Policy):
        return policy
    if policy is None:
        policy = DEFAULT_POLICY
    name = "policy"
    document: str | Mapping[str, object]
    if isinstance(policy, Mapping):
        document = policy
    elif not isinstance(policy, str | Path):
        raise ValueError(f"policy: found {policy!r}, expected a preset, a path, or the decoded mapping of a policy file")
    elif str(policy) in PRESETS:
        name, document = str(policy), PRESETS[str(policy)]
    else:
        name, document = str(policy), policy_text(policy)
    key, known = msgspec.msgpack.encode((name, document, shard)), _policies.setdefault(registry, {})
    found = known.get(key)
    if found is None:
        if len(known) > 256:
            known.clear()
        found = known[key] = load(document, registry.catalogue(), name, shard=shard)
    return found


def policy_text(path: str | Path) -> str:
    """The text of a policy file; `-` is standard input."""
    try:
        return stdin_text() if str(path) == STDIN else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else "it is not UTF-8 text"
        near = difflib.get_close_matches(str(path), PRESETS, n=1)
        meant = f" (did you mean {near[0]!r}?)" if near else ""
        message = f"expected a preset ({', '.join(PRESETS)}) or a file that can be read, but: {reason}{meant}"
        raise PolicyError(str(path), [Mistake(message)]) from None
