"""How many tasks each probe of a search places: 1, 2, 4 ... up to all, and after a failure numbers in between."""

from __future__ import annotations


class ProbeSizes:
    """Tell it after every probe whether the probe held. A probe of `size` tasks is next while `goes_on`."""

    __slots__ = ("_fails", "count", "held", "size")

    def __init__(self, count: int) -> None:
        self.count = count
        self.size = 1
        self.held = 0
        """The largest number of tasks that a probe placed."""
        self._fails = count + 1
        """The smallest number with which a probe failed."""

    @property
    def goes_on(self) -> bool:
        return self.held < self.size < self._fails

    def tell(self, *, holds: bool) -> None:
        if holds:
            self.held = self.size
        else:
            self._fails = self.size
        self.size = (self.held + self._fails) // 2 if self._fails <= self.count else min(2 * self.size, self.count)


def most_successes(count: int) -> int:
    """The largest number of successful probes up to the first one that places all `count` tasks, that one included.

    The probes with 1, 2, 4 ... `held` tasks succeed. Then the next probe places all tasks, or it fails. After a failure each
    success halves the gap to the failed number, so a gap of g allows as many as g - 1 has binary digits; the last probe follows."""
    held = most = probes = 1
    while held < count:
        gap = min(held, count - held)
        most = max(most, probes + (gap - 1).bit_length() + 1)
        held, probes = held + gap, probes + 1
    return max(most, probes)
