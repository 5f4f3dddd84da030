"""Counters, gauges and histograms, and their text for Prometheus (exposition format 0.0.4).

    registry = Registry()
    binds = registry.counters("navarch_binds", "Bindings by how they ended.", "result")
    binds.labels("ok").inc()
    registry.text()      # the body of /metrics

The format is a few lines of text; the common library for it brings an HTTP server, a WSGI one and more, 70 ms of CPU to import.
Everything here happens in the event loop's thread, so counting takes no lock.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Generic, Protocol, TypeVar

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Sample = tuple[str, tuple[tuple[str, str], ...], float]
"""Ending of the name, further labels, value."""


class Metric(Protocol):
    def samples(self) -> Iterator[Sample]: ...


M = TypeVar("M", bound=Metric)


class Counter:
    def __init__(self) -> None:
        self._value = 0.0

    def inc(self) -> None:
        self._value += 1.0

    def samples(self) -> Iterator[Sample]:
        yield "_total", (), self._value


class Gauge:
    def __init__(self) -> None:
        self._value = 0.0

    def set(self, value: float) -> None:
        self._value = float(value)

    def inc(self, amount: float) -> None:
        self._value += amount

    def samples(self) -> Iterator[Sample]:
        yield "", (), self._value


class Histogram:
    """`bounds` are the upper ends of its buckets, rising; what is above the last is counted too."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = (*bounds, float("inf"))
        self._counts = [0] * len(self._bounds)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def samples(self) -> Iterator[Sample]:
        total = 0
        for bound, total in zip(self._bounds, accumulate(self._counts)):
            yield "_bucket", (("le", _number(bound)),), float(total)
        yield "_count", (), float(total)
        yield "_sum", (), self._sum


class Family(Generic[M]):
    """Metrics of one name, told apart by the values of their labels."""

    def __init__(self, make: Callable[[], M], labels: tuple[str, ...]) -> None:
        self._make = make
        self._labels = labels
        self._children: dict[tuple[str, ...], M] = {}

    def labels(self, *values: str) -> M:
        """The metric with these values, in the order in which the labels were declared."""
        child = self._children.get(values)
        if child is None:
            if len(values) != len(self._labels):
                raise ValueError(f"found the labels {values}, expected values of {self._labels}")
            child = self._children[values] = self._make()
        return child

    def clear(self) -> None:
        self._children.clear()

    def samples(self) -> Iterator[Sample]:
        for values, child in self._children.items():
            own = tuple(zip(self._labels, values))
            for ending, further, value in child.samples():
                yield ending, own + further, value


class Read:
    """A gauge for each value of a label, read when somebody asks."""

    def __init__(self, label: str, read: Callable[[], Mapping[str, float]]) -> None:
        self._label = label
        self._read = read

    def samples(self) -> Iterator[Sample]:
        for value, number in sorted(self._read().items()):
            yield "", ((self._label, value),), float(number)


class Registry:
    def __init__(self) -> None:
        self._metrics: dict[str, tuple[str, str, Metric]] = {}

    def counter(self, name: str, text: str) -> Counter:
        return self._add(name, text, "counter", Counter())

    def counters(self, name: str, text: str, *labels: str) -> Family[Counter]:
        return self._add(name, text, "counter", Family(Counter, labels))

    def gauge(self, name: str, text: str) -> Gauge:
        return self._add(name, text, "gauge", Gauge())

    def gauges(self, name: str, text: str, *labels: str) -> Family[Gauge]:
        return self._add(name, text, "gauge", Family(Gauge, labels))

    def histogram(self, name: str, text: str, bounds: Sequence[float]) -> Histogram:
        return self._add(name, text, "histogram", Histogram(bounds))

    def histograms(self, name: str, text: str, bounds: Sequence[float], *labels: str) -> Family[Histogram]:
        return self._add(name, text, "histogram", Family(lambda: Histogram(bounds), labels))

    def watch(self, name: str, text: str, label: str, read: Callable[[], Mapping[str, float]]) -> None:
        self._add(name, text, "gauge", Read(label, read))

    def sample(self, name: str, **labels: str) -> float | None:
        """The value of one line of the text, by its whole name; None: there is no such line."""
        for family, (_, _, metric) in self._metrics.items():
            for ending, own, value in metric.samples():
                if family + ending == name and dict(own) == labels:
                    return value
        return None

    def text(self) -> bytes:
        lines: list[str] = []
        for name, (text, kind, metric) in self._metrics.items():
            shown = f"{name}_total" if kind == "counter" else name
            lines.append(f"# HELP {shown} {_escaped(text)}\n# TYPE {shown} {kind}\n")
            for ending, labels, value in metric.samples():
                inner = ",".join(f'{label}="{_quoted(each)}"' for label, each in labels)
                lines.append(f"{name}{ending}{{{inner}}} {_number(value)}\n" if inner else f"{name}{ending} {_number(value)}\n")
        return "".join(lines).encode()

    def _add(self, name: str, text: str, kind: str, metric: M) -> M:
        if name in self._metrics:
            raise ValueError(f"two metrics are called {name}")
        self._metrics[name] = (text, kind, metric)
        return metric


def _number(value: float) -> str:
    return {float("inf"): "+Inf", float("-inf"): "-Inf"}.get(value) or ("NaN" if value != value else repr(value))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')
