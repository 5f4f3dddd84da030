"""Device selectors against a second implementation: both give the same answer, or both fail, for random devices."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from tests.reference.cluster import Object
from tests.reference.device_selectors import Error, selects

from navarch.plugins.predicates.devices.cel.selector import CelError, Device, compile_selector

DRIVER, OTHER = "gpu.example.com", "vendor.io"

literals = st.sampled_from(["true", "false", "0", "1", "7", "-3", '""', '"a"', '"b"', f'"{DRIVER}"'])
reads = st.sampled_from(["device.driver", *(f'device.attributes["{d}"].{name}' for d in (DRIVER, OTHER) for name in "xyz")])
operands = literals | reads
lists = st.lists(operands, max_size=3).map(lambda items: f"[{', '.join(items)}]")
comparisons = st.builds("{} {} {}".format, operands, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), operands)
tests = comparisons | st.builds("{} in {}".format, operands, lists) | reads
expressions = st.recursive(
    tests,
    lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from(["&&", "||"]), inner) | st.builds("!({})".format, inner),
    max_leaves=8,
)
values = (
    st.builds(lambda value: {"int": value}, st.integers(-3, 8))
    | st.builds(lambda value: {"string": value}, st.sampled_from(["", "a", "b"]))
    | st.builds(lambda value: {"bool": value}, st.booleans())
)
devices = st.builds(
    lambda attributes: {"name": "gpu-0", "attributes": attributes},
    st.dictionaries(st.sampled_from(["x", "y", f"{OTHER}/x", f"{OTHER}/z"]), values, max_size=4),
)


@given(expression=expressions, device=devices)
@example(f'device.attributes["{DRIVER}"].x || true', {"name": "gpu-0"})
@example(f'false && device.attributes["{DRIVER}"].x > 1', {"name": "gpu-0"})
@example("true == 1", {"name": "gpu-0"})
def test_a_selector_answers_as_the_reference_does(expression: str, device: Object) -> None:
    expected: bool | None
    try:
        expected = selects(expression, DRIVER, device)
    except Error:
        expected = None
    found: bool | None
    try:
        found = compile_selector(expression)(Device.read(DRIVER, device))
    except CelError:
        found = None
    assert found == expected
