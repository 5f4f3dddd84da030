"""Device selectors from random text: the evaluator's own errors are the only ones, and its steps are bounded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from navarch.plugins.predicates.devices.cel.cost import Meter
from navarch.plugins.predicates.devices.cel.functions import FUNCTIONS, METHOD_NAMES
from navarch.plugins.predicates.devices.cel.selector import CelCostError, CelError, Device, compile_selector

GPU = Device.read(
    "d",
    {
        "attributes": {"s": {"string": "aé-1"}, "i": {"int": 3}, "b": {"bool": True}, "v": {"version": "1.2.3-rc.1"}},
        "capacity": {"m": {"value": "80Gi"}},
    },
)
LIMIT = 20_000
OPERATORS = ["||", "&&", "==", "!=", "<", "<=", ">", ">=", "in", "+", "-", "*", "/", "%"]

atoms = st.sampled_from(
    [
        *("true", "false", "null", "0", "1", "-1", "2.5", "1e300", "9223372036854775807", "-9223372036854775808", "0x7f"),
        *("''", "'a'", "'(a+)+$'", "'1.2.3'", "'1Gi'", "'é'", "[]", "{}", "device", "x", "y", "device.driver"),
        *(f"device.attributes['d'].{name}" for name in "sibvz"),
        *("device.attributes", "device.capacity['d'].m", "device.capacity", "device.allowMultipleAllocations"),
    ]
)


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    methods = st.sampled_from(sorted(METHOD_NAMES))
    lists = st.lists(inner, max_size=3).map(", ".join)
    return st.one_of(
        st.builds("({})".format, inner),
        st.builds("{}{}".format, st.sampled_from(["!", "-", "!!", "--"]), inner),
        st.builds(
            "{} {} {}".format,
            inner,
            st.sampled_from(["||", "&&", "==", "!=", "<", "<=", ">", ">=", "in", "+", "-", "*", "/", "%"]),
            inner,
        ),
        st.builds("{} ? {} : {}".format, inner, inner, inner),
        st.builds("[{}]".format, lists),
        st.builds("{{{}: {}}}".format, inner, inner),
        st.builds("{}[{}]".format, inner, inner),
        st.builds("{}.{}({})".format, inner, methods, lists),
        st.builds("{}({})".format, st.sampled_from([*sorted(FUNCTIONS), "has"]), lists),
        st.builds("{}.{}(x, {})".format, inner, st.sampled_from(["all", "exists", "exists_one", "filter", "map"]), inner),
        st.builds("cel.bind(y, {}, {})".format, inner, inner),
        st.builds("has({}.s)".format, inner),
    )


expressions = st.recursive(atoms, grown, max_leaves=25)


def evaluate(source: str) -> None:
    meter = Meter(LIMIT)
    try:
        assert compile_selector(source)(GPU, meter) in (True, False)
    except CelError as error:
        assert str(error)
        assert len(str(error)) < 1000
        if meter.spent > LIMIT:
            assert isinstance(error, CelCostError)
    else:
        assert meter.spent <= LIMIT


@given(expressions)
def test_expressions_answer_or_fail_with_their_own_error(source: str) -> None:
    evaluate(f"cel.bind(x, device.attributes['d'], cel.bind(y, [1, 'b', x], {source}))")


@given(st.text(alphabet=st.sampled_from(list("()[]{}!-+*/%<>=&|?:.,'\"\\rxy01 intrue\n#é")), max_size=200))
def test_random_text_is_read_or_refused(source: str) -> None:
    evaluate(source)


@given(expressions, st.data())
def test_expressions_with_a_hole_are_read_or_refused(source: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(source)))
    evaluate(source[:start] + source[start + 1 :])
    evaluate(source[:start])


@given(st.sampled_from(["!({})", "-({})", "[{}]", "({})", "true && ({})", "true ? ({}) : 1", "[1].map(x, {})"]), st.integers(0, 1200))
def test_any_depth_is_evaluated(wrap: str, depth: int) -> None:
    before, _, after = wrap.partition("{}")
    source = before * depth + "1" + after * depth
    if len(source) <= 10_000:
        evaluate(source)
