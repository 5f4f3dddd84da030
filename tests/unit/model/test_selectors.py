"""Selectors, node terms, taints: presence rules, operators and the API's error texts."""

from __future__ import annotations

import pytest

from navarch.model.label_syntax import aggregate, key_complaints, parse_int64, requirement_errors, value_complaints
from navarch.model.selectors import (
    first_untolerated,
    label_selector_errors,
    node_selector_matches,
    pinned_nodes,
    read_label_selector,
    read_node_selector,
    read_node_term,
    read_taint,
    read_toleration,
    requirement_matches,
    selector_matches,
    term_errors,
    term_matches,
    term_usable,
    tolerates,
)
from navarch.model.spec import NodeTerm, Requirement, Taint, Toleration

LABELS = {"app": "web", "size": "10", "odd": "1_0"}


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        ("app", "In", ("web", "db"), True),
        ("app", "In", ("db",), False),
        ("absent", "In", ("",), False),
        ("app", "NotIn", ("web",), False),
        ("absent", "NotIn", ("web",), True),
        ("app", "Exists", (), True),
        ("absent", "Exists", (), False),
        ("app", "DoesNotExist", (), False),
        ("absent", "DoesNotExist", (), True),
        ("size", "Gt", ("9",), True),
        ("size", "Gt", ("10",), False),
        ("size", "Lt", ("+011",), True),
        ("size", "Lt", ("1_1",), False),
        ("odd", "Lt", ("11",), False),
        ("absent", "Lt", ("11",), False),
        ("app", "Matches", ("web",), False),
    ],
)
def test_a_requirement_matches_by_its_operator(key: str, operator: str, values: tuple[str, ...], expected: bool) -> None:
    assert requirement_matches(Requirement(key, operator, values), LABELS) is expected


def test_absent_selector_is_nothing_and_empty_is_everything() -> None:
    assert not selector_matches(read_label_selector(None), LABELS)
    assert selector_matches(read_label_selector({}), LABELS)


def test_labels_and_expressions_must_both_hold() -> None:
    selector = read_label_selector({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "gone", "operator": "DoesNotExist"}]})
    assert selector_matches(selector, LABELS)
    assert not selector_matches(selector, LABELS | {"gone": ""})


def test_order_of_match_labels_does_not_make_another_selector() -> None:
    assert read_label_selector({"matchLabels": {"a": "1", "b": "2"}}) == read_label_selector({"matchLabels": {"b": "2", "a": "1"}})


def test_node_terms_are_alternatives_and_bad_ones_are_passed_over() -> None:
    terms = read_node_selector(
        {
            "nodeSelectorTerms": [
                {},
                {"matchExpressions": [{"key": "app", "operator": "In"}]},
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
            ]
        }
    )
    assert terms is not None
    assert node_selector_matches(terms, LABELS, "n1")
    assert not node_selector_matches(terms, LABELS, "n2")
    assert read_node_selector(None) is None
    assert read_node_selector({}) == ()


def test_node_term_field_not_in() -> None:
    term = read_node_term({"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}]})
    assert (term_matches(term, {}, "n1"), term_matches(term, {}, "n2")) == (False, True)
    assert not term_usable(NodeTerm())
    assert not node_selector_matches((NodeTerm(),), {}, "n1")


def test_nodes_named_by_every_term() -> None:
    def named(*names: str) -> dict[str, object]:
        return {"key": "metadata.name", "operator": "In", "values": list(names)}

    both = read_node_term({"matchFields": [named("a", "b"), named("b", "c")]})
    one = read_node_term({"matchFields": [named("d")]})
    free = read_node_term({"matchExpressions": [{"key": "x", "operator": "Exists"}]})
    assert pinned_nodes((both, one)) == frozenset({"b", "d"})
    assert pinned_nodes((both, free)) is None
    assert pinned_nodes(()) is None
    assert pinned_nodes((read_node_term({"matchFields": [named("a"), named("b")]}),)) == frozenset()


def test_error_texts_of_node_terms() -> None:
    term = read_node_term(
        {
            "matchExpressions": [{"key": "size", "operator": "Gt", "values": ["1_0"]}],
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0", "n1"]}],
        }
    )
    assert term_errors(term, "[1]") == [
        "[1].matchExpressions[0].values[0]: Invalid value: \"1_0\": for 'Gt', 'Lt' operators, the value must be an integer",
        '[1].matchFields[0].values: Invalid value: ["n0","n1"]: must have one element',
    ]
    assert aggregate(["a", "b", "a"]) == "[a, b]"
    assert aggregate(["a", "a"]) == "a"


def test_error_text_of_a_label_value() -> None:
    selector = read_label_selector({"matchLabels": {"app": "{{.bad}}"}})
    (error,) = label_selector_errors(selector)
    assert error.startswith('values[0][app]: Invalid value: "{{.bad}}": a valid label must be an empty string or')
    assert label_selector_errors(read_label_selector({"matchExpressions": [{"key": "a", "operator": "Gt"}]})) == [
        '"Gt" is not a valid label selector operator'
    ]


@pytest.mark.parametrize("key", ["a", "a.b/c", "A_b-c.d", "x" * 63])
def test_a_valid_key_has_no_complaints(key: str) -> None:
    assert key_complaints(key) == ()


@pytest.mark.parametrize("key", ["", "a b", "/a", "A.b/c", "a/b/c", "a/", "x" * 64, "-a", f"{'a' * 254}/b"])
def test_an_invalid_key_has_complaints(key: str) -> None:
    assert key_complaints(key)


@pytest.mark.parametrize(("value", "good"), [("", True), ("a", True), ("-", False), ("a" * 64, False), ("a b", False)])
def test_a_label_value_is_valid_or_has_complaints(value: str, good: bool) -> None:
    assert (not value_complaints(value)) is good


@pytest.mark.parametrize(
    ("operator", "values"), [("In", ()), ("NotIn", ()), ("Exists", ("a",)), ("Gt", ()), ("Lt", ("1", "2")), ("X", ())]
)
def test_requirements_that_do_not_parse(operator: str, values: tuple[str, ...]) -> None:
    assert requirement_errors("key", operator, values)


def test_a_label_is_an_integer_only_within_int64() -> None:
    assert [parse_int64(text) for text in ("007", "-1", "+1", "1_0", "", str(1 << 63), "٣")] == [
        7, -1, 1, None, None, None, None,
    ]  # fmt: skip


TAINT = Taint("gpu", "a", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"key": "gpu", "value": "a", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "operator": "Equal", "value": "b"}, False),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"operator": "Exists"}, True),
        ({"value": "a"}, True),
        ({"value": "b"}, False),
        ({"key": "gpu", "operator": "Lt", "value": "5"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_a_toleration_covers_a_taint_by_key_value_and_effect(toleration: dict[str, str], expected: bool) -> None:
    assert tolerates(read_toleration(toleration), TAINT) is expected


def test_comparison_operators_tolerate_nothing() -> None:
    taint = read_taint({"key": "level", "value": "5", "effect": "NoSchedule"})
    assert not tolerates(Toleration("level", "Gt", "4"), taint)
    assert not tolerates(Toleration("level", "Lt", "6"), taint)


def test_first_untolerated_looks_only_at_the_named_effects() -> None:
    taints = (Taint("a", "", "PreferNoSchedule"), Taint("b", "", "NoExecute"), TAINT)
    hard = frozenset({"NoSchedule", "NoExecute"})
    assert first_untolerated(taints, (), hard) == taints[1]
    assert first_untolerated(taints, (Toleration(operator="Exists"),), hard) is None
