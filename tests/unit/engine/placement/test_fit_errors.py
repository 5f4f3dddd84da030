"""The text on a pod that found no node."""

from __future__ import annotations

import pytest

from navarch.engine.placement.fit_errors import FitErrors, histogram
from navarch.engine.semantics import Semantics


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({}, ""),
        ({"Insufficient cpu": 2}, "2 Insufficient cpu"),
        ({"b": 2, "a": 10}, "10 a, 2 b"),
        ({"a": 9, "b": 10}, "10 b, 9 a"),
    ],
)
def test_reasons_are_sorted_as_texts(counts: dict[str, int], text: str) -> None:
    assert histogram(counts) == text


def test_the_text_counts_nodes_or_says_what_came_before_them() -> None:
    errors = FitErrors(13, {"Insufficient cpu": 2, "node(s) were unschedulable": 1, "b": 10})
    assert errors.text() == "0/13 nodes are available: 10 b, 2 Insufficient cpu, 1 node(s) were unschedulable."
    theirs = Semantics(refusals_tell_all=False)
    assert errors.text(theirs) == "0/13 nodes are unavailable: 1 node(s) were unschedulable, 10 b, 2 Insufficient cpu."
    assert FitErrors(0, message="skipped").text() == "skipped"
    assert FitErrors(1, {"full": 1}, domain="rack-1").text() == "In hyperNode rack-1: 0/1 nodes are available: 1 full."
    assert FitErrors(0).text() == "there are no nodes."


def test_the_text_as_kube_scheduler_writes_it() -> None:
    errors = FitErrors(2, {"Insufficient cpu": 2})
    assert errors.available_text(2) == "0/2 nodes are available: 2 Insufficient cpu."
    assert errors.available_text(2, rejection="claim missing") == "0/2 nodes are available: claim missing."
    assert errors.available_text(2, after="preemption: none.") == "0/2 nodes are available: 2 Insufficient cpu. preemption: none."
    assert FitErrors(0).available_text(0) == "0/0 nodes are available:"
