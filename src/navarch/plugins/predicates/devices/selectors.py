"""Asks device selectors, within what they may cost.

One evaluation may cost what kube-scheduler allows. A selector is asked of every device of a cluster, and anyone may write one, so
beyond a small price that is free every evaluation draws on an allowance of the claim's namespace. Once that is used up, its costly
selectors fail and its cheap ones go on. A selector that cost too much once is not asked again. All of it is counted in steps, so a
cycle ends the same way on every machine.
"""

from __future__ import annotations

from navarch.plugins.predicates.devices.cel.cost import LIMIT, Meter
from navarch.plugins.predicates.devices.cel.selector import CelCostError, CelError, CelRuntimeError, Device, compile_selector

FREE = 200
"""Steps of one evaluation that no allowance pays. Published selectors take 10 to 50."""
ALLOWANCE = 5 * LIMIT
"""Steps of a namespace beyond those; about two seconds."""


class SelectorFailure(Exception):
    """A device selector that cannot be used, in the words that users know."""


class TooCostly(SelectorFailure):
    """It cost more than the claim's namespace may spend; the same selector of another namespace may still do."""


class Selectors:
    """Kept as long as the devices stay as they are."""

    def __init__(self) -> None:
        self.spent: dict[str, int] = {}
        """Namespace -> steps of its allowance that are used up; classes have the empty namespace."""
        self._too_costly: dict[tuple[str, str], TooCostly] = {}

    def ask(self, selector: str, device: Device, namespace: str) -> bool | SelectorFailure:
        known = self._too_costly.get((namespace, selector))
        if known is not None:
            return known
        left = ALLOWANCE - self.spent.get(namespace, 0)
        meter = Meter(max(min(LIMIT, left), FREE))
        try:
            return compile_selector(selector)(device, meter)
        except CelRuntimeError as error:
            return SelectorFailure(f"CEL runtime error: {error}")
        except CelCostError as error:
            text = f"CEL cost error: {error}"
            if meter.limit < LIMIT:
                text += f"; selectors of namespace {namespace} have used up {ALLOWANCE}"
            failure = self._too_costly[namespace, selector] = TooCostly(text)
            return failure
        except CelError as error:
            return SelectorFailure(f"CEL compile error: {error}")
        finally:
            if meter.spent > FREE:
                self.spent[namespace] = self.spent.get(namespace, 0) + meter.spent - FREE
