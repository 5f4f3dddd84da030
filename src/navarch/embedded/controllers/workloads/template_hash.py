"""A short name for the content of a pod template, as it appears in the names of ReplicaSets and revisions."""

from __future__ import annotations

import hashlib

import msgspec

from navarch.object_types import Manifest

LETTERS = "bcdfghjklmnpqrstvwxz2456789"
LENGTH = 10


def template_hash(template: Manifest, collisions: int = 0) -> str:
    """Ten letters without vowels, the same for the same template."""
    content = msgspec.json.encode([template, collisions], order="sorted")
    number = int.from_bytes(hashlib.sha256(content).digest()[:16], "big")
    letters = []
    for _ in range(LENGTH):
        number, index = divmod(number, len(LETTERS))
        letters.append(LETTERS[index])
    return "".join(letters)
