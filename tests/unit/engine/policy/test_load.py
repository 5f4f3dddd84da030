"""Whatever is thrown at the loader comes back as a policy or as named mistakes, never as a crash; and always the same."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.worlds.policy_catalogue import CATALOGUE

from navarch.engine.policy import PRESETS, Policy, PolicyError, load
from navarch.engine.policy.describe import describe

_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False)
    | st.sampled_from(["gang", "allocate, backfill", "true", "volcano", "kai", "binpack", "5", "", "*", "elastic", "1m"])
)
_KEYS = st.sampled_from(
    [
        "actions",
        "tiers",
        "plugins",
        "name",
        "arguments",
        "enableJobOrder",
        "disableJobOrder",
        "configurations",
        "metrics",
        "compat",
        "schedulerParams",
        "queueDepthPerAction",
        "usageDBConfig",
        "scenarioSearchBudgets",
        "profiles",
        "kind",
        "apiVersion",
        "score",
        "enabled",
        "disabled",
        "multiPoint",
        "weight",
        "pluginConfig",
        "args",
        "plugin.gang.jobready",
        "percentageOfNodesToScore",
    ]
)
_VALUES = st.recursive(_LEAVES, lambda v: st.lists(v, max_size=3) | st.dictionaries(_KEYS, v, max_size=4), max_leaves=12)
_KUBE = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def outcome(document: dict[str, object]) -> Policy | list[str]:
    try:
        return load(document, CATALOGUE)
    except PolicyError as error:
        assert error.mistakes
        return [str(mistake) for mistake in error.mistakes]


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(_KEYS, _VALUES, max_size=6), st.sampled_from([{}, _KUBE, {"compat": "volcano"}, {"compat": "kai"}]))
def test_any_document_is_a_policy_or_named_mistakes(document: dict[str, object], more: dict[str, object]) -> None:
    first = outcome({**document, **more})
    assert first == outcome({**document, **more})
    if isinstance(first, Policy):
        assert describe(first, CATALOGUE)["mistakes"] == []


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(PRESETS)), _KEYS, _VALUES)
def test_a_preset_with_one_thing_changed(name: str, key: str, value: object) -> None:
    outcome({**PRESETS[name], key: value})
