"""A figure over time in bounded memory: its integral is exact, its points are means over equal spans.

Spans double when there are too many of them, so a day and a year both come out as some hundreds of points.
"""

from __future__ import annotations

from array import array

MOST_SPANS = 2048


class TimeSeries:
    """A step function: `note` says what the value is from a moment on. Moments never go back."""

    def __init__(self, span: float = 1.0) -> None:
        self.span = span
        """Seconds that one point stands for."""
        self.start: float | None = None
        self._sums = array("d")
        """Value times seconds, for each span since `start`."""
        self._value = 0.0
        self._since = 0.0
        self._total = 0.0

    def note(self, now: float, value: float) -> None:
        if self.start is None:
            self.start = now
        elif now != self._since:
            self._advance(now)
        self._since, self._value = now, value

    def integral(self, end: float) -> float:
        """Value times seconds up to `end`, which is no earlier than the last note. Before the first note the value is zero."""
        return self._total + self._value * max(0.0, end - self._since)

    def points(self, end: float) -> list[tuple[float, float]]:
        """(middle of a span, mean value in it) up to `end`."""
        if self.start is None:
            return []
        self.note(end, self._value)
        found = []
        for number, total in enumerate(self._sums):
            begin = self.start + number * self.span
            length = min(self.span, end - begin)
            if length > 0:
                found.append((begin + length / 2, total / length))
        return found

    def _advance(self, now: float) -> None:
        assert self.start is not None
        self._total += self._value * (now - self._since)
        while now - self.start > MOST_SPANS * self.span:
            self._double()
        at = self._since
        number = int((at - self.start) / self.span)
        while at < now:
            end = min(now, self.start + (number + 1) * self.span)
            while len(self._sums) <= number:
                self._sums.append(0.0)
            self._sums[number] += self._value * (end - at)
            at, number = end, number + 1

    def _double(self) -> None:
        self.span *= 2
        pairs = self._sums + array("d", [0.0] * (len(self._sums) % 2))
        self._sums = array("d", [pairs[i] + pairs[i + 1] for i in range(0, len(pairs), 2)])
