"""Where the recorded answers of other schedulers lie, and how to read them.

They are not part of this repository: `NAVARCH_SHARED` names their directory, else `../shared` beside the checkout is
tried. Where neither exists the tests that need them are skipped and say so.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

Case = dict[str, Any]


def shared_directory() -> Path | None:
    checkout = Path(__file__).resolve().parents[2]
    chosen = Path(os.environ.get("NAVARCH_SHARED") or checkout.parent / "shared")
    return chosen if (chosen / "parity").is_dir() else None


def recorded_cases(scheduler: str) -> list[Case]:
    """Every case of one scheduler in the order of files and lines; none where the recordings are absent."""
    shared = shared_directory()
    if shared is None:
        return []
    files = sorted((shared / "parity" / scheduler).glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]
