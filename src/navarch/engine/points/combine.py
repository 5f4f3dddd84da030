"""Rules that combine the answers of several plugins at one point.

Each function takes the plugins of one point as tiers, in policy order. In strict mode an AND covers all tiers; switches of
`Semantics` restore the shortcuts of other systems.
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
    """Any rejection refuses. A permit ends the vote at the end of its tier. No vote at all permits. Returns the Reason, or True or
    False."""
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


def starving(tiers: Tiers[P], ask: Callable[[P], bool]) -> bool:
    return all(ask(plugin) for tier in tiers for plugin in tier)


def victims(tiers: Tiers[P], ask: Callable[[P], list[int] | None], candidates: Sequence[int], semantics: Semantics) -> list[int]:
    """The victims that every plugin with an opinion offers; none if no plugin has an opinion.

    With `victims_first_tier_decides` the first tier that offers any victim decides alone, an empty list ends its tier, and a tier
    whose lists share nothing may start again. `refusing_tier_is_final` says whether a tier that refuses decides too."""
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
    """The victims that the tier offers; None if no plugin in it has an opinion."""
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
    """The union inside a tier. The first tier that names any task decides."""
    for tier in tiers:
        named = dict.fromkeys(task for plugin in tier for task in ask(plugin) or ())
        if named:
            return list(named)
    return []
