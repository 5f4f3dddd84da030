"""The errors of figures that are fetched again and again: logged once for as long as they last.

Statistics must never end the scheduler. So an error of any kind leaves the last figures in place, and the next fetch follows.
"""

from __future__ import annotations

import logging


class FetchErrors:
    """`what` names the figures in log lines."""

    def __init__(self, log: logging.Logger, what: str) -> None:
        self.text = ""
        """What went wrong last; empty after a success."""
        self._log = log
        self._what = what

    def failed(self, error: Exception) -> None:
        """The source did not answer, or not as expected."""
        if str(error) != self.text:
            self._log.warning("%s could not be fetched: %s", self._what, error)
        self.text = str(error)

    def crashed(self, error: Exception) -> None:
        """An unforeseen error: it is logged in full."""
        self._log.error("%s could not be fetched", self._what, exc_info=error)
        self.text = f"{type(error).__name__}: {error}"

    def succeeded(self) -> None:
        if self.text:
            self._log.info("%s is fetched again", self._what)
        self.text = ""
