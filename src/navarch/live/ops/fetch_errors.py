"""The errors of figures that are fetched again and again: logged once for as long as they last.

Statistics must never end the scheduler. So an error of any kind leaves the last figures in place, and the next fetch follows.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class FetchErrors:
    """`what` names the figures in log lines."""

    def __init__(self, log: logging.Logger, what: str) -> None:
        self.text = ""
        """What went wrong last; empty after a success."""
        self._log = log
        self._what = what

    async def attempt(self, expected: type[Exception], fetch: Awaitable[T]) -> T | None:
        """What `fetch` brings; None: it failed, which is logged. `expected`: the source did not answer as it should."""
        try:
            found = await fetch
        except expected as error:
            if str(error) != self.text:
                self._log.warning("%s could not be fetched: %s", self._what, error)
            self.text = str(error)
            return None
        except Exception as error:
            # Unforeseen, so it is logged in full. The last figures stay, and the next attempt follows.
            self._log.error("%s could not be fetched", self._what, exc_info=error)
            self.text = f"{type(error).__name__}: {error}"
            return None
        if self.text:
            self._log.info("%s is fetched again", self._what)
        self.text = ""
        return found
