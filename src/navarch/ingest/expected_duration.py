"""How long a job is expected to run: the annotation `navarch.io/expected-duration`, such as `1h30m`, of its group.

Policies that order jobs by length or promise starts read it (`JobSpec.expected_duration`), and so do start times. A text that is no
duration counts as absent. A pod without a group has its own annotation, or else is expected to run for its `activeDeadlineSeconds`.
"""

from __future__ import annotations

from navarch.engine.arguments import WrongKind, duration
from navarch.model.spec import Labels

EXPECTED_DURATION = "navarch.io/expected-duration"


def expected_duration(annotations: Labels, active_deadline: float | None = None) -> float | None:
    """
    >>> expected_duration({"navarch.io/expected-duration": "1h30m"}), expected_duration({}), expected_duration({}, 600.0)
    (5400.0, None, 600.0)
    """
    text = annotations.get(EXPECTED_DURATION) if annotations else None
    if not text:
        return active_deadline
    try:
        seconds = duration(text)
    except WrongKind:
        return active_deadline
    return seconds if seconds > 0 else active_deadline
