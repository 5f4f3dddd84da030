"""The minimum of a group with sub-groups: the fewest pods that it needs, and the sub-groups that it always needs.

KAI's actions evaluate the tree of sub-groups. All other actions use one number for a group and one flag for each sub-group. Both are
computed here when the group is read, so that it is the same gang under every policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from navarch.model.spec import SubGroupSpec

Children = Mapping[str, Sequence[SubGroupSpec]]


def fewest_pods(parts: Sequence[SubGroupSpec], needed: int | None) -> int:
    """Pods of the smallest gang that satisfies the tree. `needed`: how many of its top sub-groups are needed; None: all.

    >>> leaves = (SubGroupSpec("left", 2, "workers"), SubGroupSpec("right", 3, "workers"))
    >>> fewest_pods((SubGroupSpec("ps", 1), SubGroupSpec("workers", 0, min_sub_groups=1), *leaves), None)
    3
    """
    return _fewest(_children(parts), "", needed)


def marked(parts: Sequence[SubGroupSpec], needed: int | None) -> tuple[SubGroupSpec, ...]:
    """The sub-groups; those that hold pods and are in every gang that satisfies the tree are marked (`min_groups`)."""
    below = _children(parts)
    certain: set[str] = set()
    waiting = [("", needed)]
    while waiting:
        name, wanted = waiting.pop()
        children = below.get(name, ())
        if wanted is None or wanted >= len(children):
            certain.update(child.name for child in children)
            waiting += [(child.name, child.min_sub_groups) for child in children if child.name in below]
    needs_pods = {part.name for part in parts if part.min_member and part.name not in below}
    return tuple(replace(part, min_groups=1) if part.name in certain & needs_pods else part for part in parts)


def _children(parts: Sequence[SubGroupSpec]) -> Children:
    found: dict[str, list[SubGroupSpec]] = {}
    for part in parts:
        found.setdefault(part.parent, []).append(part)
    return found


def _fewest(below: Children, name: str, wanted: int | None) -> int:
    children = below.get(name, ())
    needs = sorted(_fewest(below, child.name, child.min_sub_groups) if child.name in below else child.min_member for child in children)
    return sum(needs[:wanted])
