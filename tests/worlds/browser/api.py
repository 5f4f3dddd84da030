"""The dashboard's JSON API as a program asks it, and waiting for what it says."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlsplit
from urllib.request import Request, urlopen

PATIENCE = 120.0


def ask(address: str, path: str) -> Any:
    """The answer to a GET, or None while the server is not ready. `address` has the token in it."""
    parts = urlsplit(address)
    token = parse_qs(parts.query)["token"][0]
    request = Request(f"{parts.scheme}://{parts.netloc}/api/v1/{path}", headers={"Authorization": f"Bearer {token}"})
    try:
        with urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)
    except HTTPError as error:
        if error.code != 503:
            raise
        return None


def until(address: str, path: str, holds: Callable[[Any], bool]) -> Any:
    """Ask until the answer is as wanted."""
    end = time.monotonic() + PATIENCE
    while True:
        found = ask(address, path)
        if found is not None and holds(found):
            return found
        assert time.monotonic() < end, f"{path}: {str(found)[:2000]}"
        time.sleep(0.1)


def rows(answer: Any) -> list[dict[str, Any]]:
    """Rows of an answer of the form {columns, rows}."""
    return [dict(zip(answer["columns"], row, strict=True)) for row in answer["rows"]]
