"""Device selectors: the part of CEL that drivers' selectors use, compiled once and then asked of every device.

`device.driver`, `device.attributes[domain].name`, `device.capacity[domain].name` and `device.allowMultipleAllocations` are known; so
are comparisons, boolean operators, `in`, `has`, `? :`, arithmetic, the string functions, `quantity()`, `semver()`, `cel.bind` and the
list macros `all`, `exists`, `exists_one`, `filter` and `map`. What is not known is refused when the expression is read.

>>> test = compile_selector('device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0')
>>> test(Device.read("gpu.example.com", {"capacity": {"memory": {"value": "80Gi"}}}))
True
"""

from __future__ import annotations

from functools import lru_cache

from navarch.plugins.predicates.devices.cel import functions
from navarch.plugins.predicates.devices.cel.compiler import compile_expression
from navarch.plugins.predicates.devices.cel.cost import Meter
from navarch.plugins.predicates.devices.cel.machine import Program
from navarch.plugins.predicates.devices.cel.values import CelCostError, CelError, CelRuntimeError, Device

__all__ = ["CelCostError", "CelError", "CelRuntimeError", "Device", "Selector", "compile_selector"]


class Selector:
    """A test of one device."""

    __slots__ = ("_program",)

    def __init__(self, program: Program) -> None:
        self._program = program

    def __call__(self, device: Device, meter: Meter | None = None) -> bool:
        """CelRuntimeError if the device lacks what the expression reads, CelCostError if it costs more than the meter allows."""
        value = self._program.run(device, meter if meter is not None else Meter())
        if not isinstance(value, bool):
            raise CelRuntimeError(f"the expression must give a bool, found {functions.type_name(value)}")
        return value


def compile_selector(source: str) -> Selector:
    """CelError if the text is unusable."""
    found = _compiled(source)
    if isinstance(found, CelError):
        raise found.with_traceback(None)
    return found


@lru_cache(maxsize=512)
def _compiled(source: str) -> Selector | CelError:
    """Failures are kept as well: a text of 10 KiB that fails at its end is not read again for every device."""
    try:
        return Selector(compile_expression(source))
    except CelError as error:
        return error
