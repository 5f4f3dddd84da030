"""How long a job is expected to run: the annotation `navarch.io/expected-duration` of its group, such as `1h30m`.

Policies that order jobs by length or promise starts read it (`JobSpec.expected_duration`). A text that is no duration counts as
absent.
"""

from __future__ import annotations

from navarch.engine.arguments import WrongKind, duration
from navarch.model.spec import Labels

EXPECTED_DURATION = "navarch.io/expected-duration"


def expected_duration(annotations: Labels) -> float | None:
    """
    >>> expected_duration({"navarch.io/expected-duration": "1h30m"}), expected_duration({})
    (5400.0, None)
    """
    text = annotations.get(EXPECTED_DURATION) if annotations else None
    if not text:
        return None
    try:
        seconds = duration(text)
    except WrongKind:
        return None
    return seconds if seconds > 0 else None
