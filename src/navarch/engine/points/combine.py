"""How the answers of several plugins become one: the rules that a policy's tiers mean.

Each function takes the plugins of one point as tiers, in policy order. Strict mode reads what looks like AND as AND over
all tiers; the switches of `Semantics` bring back the short cuts that some files rely on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from navarch.engine.points.protocols import Vote
from navarch.engine.reasons import Reason
from navarch.engine.semantics import Semantics

P = TypeVar("P")
Tiers = Sequence[Sequence[P]]


def first_opinion(opinions: Iterable[int]) -> int:
    """Orders: the first plugin that prefers one side decides."""
    for opinion in opinions:
        if opinion:
            return opinion
    return 0


def votes(tiers: Tiers[P], ask: Callable[[P], Vote | Reason]) -> Reason | bool:
    """Any rejection refuses; a tier that permitted ends the asking; silence permits. Returns the Reason, or whether yes."""
    for tier in tiers:
        permitted = False
        for plugin in tier:
            answer = ask(plugin)
            if isinstance(answer, Reason):
                return answer
            if answer == Vote.REJECT:
                return False
            permitted = permitted or answer == Vote.PERMIT
        if permitted:
            return True
    return True


def starving(tiers: Tiers[P], ask: Callable[[P], bool], semantics: Semantics) -> bool:
    asked = False
    for tier in tiers:
        if not tier:
            continue
        asked = True
        if not all(ask(plugin) for plugin in tier):
            return False
        if semantics.starving_first_tier_decides:
            return True
    return asked or semantics.silence_is_starving


def victims(tiers: Tiers[P], ask: Callable[[P], list[int] | None], candidates: Sequence[int], semantics: Semantics) -> list[int]:
    """What every plugin with an opinion offers; nothing where none has one: an eviction needs somebody's word.

    With `victims_first_tier_decides`: the first tier that offers any decides alone, an empty list ends its tier, and a tier
    whose lists share nothing may start afresh; whether a tier that refuses decides too is `refusing_tier_is_final`."""
    if not semantics.victims_first_tier_decides:
        allowed: set[int] | None = None
        for tier in tiers:
            for plugin in tier:
                offered = ask(plugin)
                if offered is not None:
                    allowed = set(offered) if allowed is None else allowed & set(offered)
                    if not allowed:
                        return []
        return [c for c in candidates if allowed is not None and c in allowed]
    for tier in tiers:
        found = _tier_victims(tier, ask, semantics)
        if found or (found is not None and semantics.refusing_tier_is_final):
            return found
    return []


def _tier_victims(tier: Sequence[P], ask: Callable[[P], list[int] | None], semantics: Semantics) -> list[int] | None:
    """What the tier offers; None if nobody in it has an opinion."""
    found: list[int] | None = None
    for plugin in tier:
        offered = ask(plugin)
        if offered is None:
            continue
        if not offered:
            return []
        if found is None:
            found = offered
        else:
            both = set(offered)
            found = [task for task in found if task in both]
            if not found and semantics.victims_reinitialise_on_empty:
                found = None
    return found


def united(tiers: Tiers[P], ask: Callable[[P], list[int] | None]) -> list[int]:
    """The union inside a tier; the first tier that names any wins."""
    for tier in tiers:
        named = dict.fromkeys(task for plugin in tier for task in ask(plugin) or ())
        if named:
            return list(named)
    return []
