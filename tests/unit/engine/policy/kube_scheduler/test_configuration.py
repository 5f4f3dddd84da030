"""A KubeSchedulerConfiguration: the default profile, merging by kube-scheduler's rules, and its strict decoding."""

from __future__ import annotations

from textwrap import dedent

import pytest
from tests.worlds.policy_catalogue import CATALOGUE

from navarch.engine.policy import Policy, PolicyError, load, preset
from navarch.plugins.kube_scheduler.plugins import weighted

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def read(text: str) -> Policy:
    return load(HEAD + dedent(text), CATALOGUE, "test.yaml")


def mistakes(text: str) -> list[str]:
    with pytest.raises(PolicyError) as raised:
        read(text)
    return [str(mistake) for mistake in raised.value.mistakes]


def weights(policy: Policy) -> dict[str, object]:
    return {o.name: o.arguments["weight"] for o in policy.plugins if o.is_enabled("node_order")}


def filters(policy: Policy) -> list[str]:
    return [o.name for o in policy.plugins if o.is_enabled("predicate")]


def test_the_default_profile_has_the_plugins_of_kube_scheduler() -> None:
    policy = preset("kube-scheduler", CATALOGUE)
    assert policy.actions == ("schedule",) and policy.compat == policy.dialect == "kube-scheduler"
    assert policy.configurations["schedule"] == {"percentageOfNodesToScore": 100, "preemption": True, "gangs": True}
    assert filters(policy) == [
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
        "NodeDeclaredFeatures",
    ]
    assert weights(policy) == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
    }
    assert policy.scheduler_name == "default-scheduler"
    assert policy.warnings == ("kube-scheduler's plugin 'ImageLocality' does not exist here yet; skipped",)


def test_points_beat_multi_point_and_weights_replace_in_place() -> None:
    policy = read("""\
        profiles:
        - schedulerName: packer
          percentageOfNodesToScore: 0
          plugins:
            multiPoint:
              enabled: [{name: oldest}, {name: InterPodAffinity, weight: 7}]
              disabled: [{name: VolumeZone}]
            filter:
              enabled: [{name: NodePorts}]
              disabled: [{name: NodeName}]
            score:
              disabled: [{name: "*"}]
              enabled: [{name: NodeResourcesFit, weight: 5}, {name: NodeAffinity}]
            postFilter:
              disabled: [{name: "*"}]
          pluginConfig:
          - name: NodeResourcesFit
            args:
              apiVersion: kubescheduler.config.k8s.io/v1
              kind: NodeResourcesFitArgs
              scoringStrategy:
                type: MostAllocated
                resources: [{name: nvidia.com/gpu, weight: 10}]
          - name: DefaultPreemption
            args: {minCandidateNodesPercentage: 50}
        """)
    assert policy.scheduler_name == "packer"
    assert filters(policy)[:3] == ["NodePorts", "NodeUnschedulable", "TaintToleration"]
    assert "NodeName" not in filters(policy) and "VolumeZone" not in filters(policy)
    assert weights(policy) == {"NodeResourcesFit": 5, "NodeAffinity": 1}
    fit = policy.plugin("NodeResourcesFit")
    assert fit is not None
    assert fit.arguments["scoringStrategy"] == {
        "type": "MostAllocated",
        "resources": [{"name": "nvidia.com/gpu", "weight": 10}],
    }
    assert policy.configurations["schedule"] == {
        "percentageOfNodesToScore": 0,
        "preemption": False,
        "gangs": False,
        "minCandidateNodesPercentage": 50,
    }


def test_multi_point_weight_holds_at_score() -> None:
    policy = read("profiles: [{plugins: {multiPoint: {enabled: [{name: InterPodAffinity, weight: 7}]}}}]\n")
    assert weights(policy)["InterPodAffinity"] == 7
    assert filters(policy).index("InterPodAffinity") == 11


def test_a_file_without_percentage_is_adaptive() -> None:
    assert read("parallelism: 16\n").configurations["schedule"]["percentageOfNodesToScore"] == 0
    assert read("percentageOfNodesToScore: 40\n").configurations["schedule"]["percentageOfNodesToScore"] == 40


def test_each_profile_has_its_own_plugins() -> None:
    policy = read("""\
        profiles:
        - schedulerName: one
        - schedulerName: two
          plugins: {score: {disabled: [{name: "*"}]}}
        """)
    assert list(policy.profiles) == ["one", "two"] and policy.tiers == (policy.profiles["one"].plugins,)
    assert not any(option.is_enabled("node_order") for option in policy.profiles["two"].plugins)
    assert not any("profile" in warning for warning in policy.warnings)


def test_decoding_is_strict_and_says_everything() -> None:
    assert mistakes("""\
        percentageOfNodesToScores: 5
        profiles:
        - plugins:
            scores: {}
            score:
              enabled: [{name: NodeAfinity}, {name: NodeAffinity, wieght: 2}]
            queueSort: {disabled: [{name: "*"}]}
            bind: {disabled: [{name: "*"}]}
          pluginConfig:
          - name: NodeResourcesFit
            args: {scoringStrategy: {type: Most, resource: []}}
          - name: InterPodAffinity
            args: {kind: NodeAffinityArgs, hardPodAffinityWeight: heavy}
        - {}
        """) == [
        "line 3, percentageOfNodesToScores: unknown key 'percentageOfNodesToScores' (did you mean 'percentageOfNodesToScore'?)",
        "line 5, profiles[0].schedulerName: each of several profiles needs a schedulerName",
        "line 5, profiles[0].plugins: queueSort: found none, expected exactly one plugin",
        "line 5, profiles[0].plugins: bind: found none, expected at least one plugin",
        "line 6, profiles[0].plugins.scores: unknown extension point 'scores' (did you mean 'score'?)",
        "line 8, profiles[0].plugins.score.enabled[0]: unknown plugin 'NodeAfinity' (did you mean 'NodeAffinity'?)",
        "line 8, profiles[0].plugins.score.enabled[1].wieght: unknown field of plugin 'wieght' (did you mean 'weight'?)",
        "line 13, profiles[0].pluginConfig[0].args.scoringStrategy.type: found 'Most', expected one of"
        " LeastAllocated, MostAllocated, RequestedToCapacityRatio",
        "line 13, profiles[0].pluginConfig[0].args.scoringStrategy.resource: unknown field of NodeResourcesFitArgs"
        " 'resource' (did you mean 'resources'?)",
        "line 15, profiles[0].pluginConfig[1].args.kind: found 'NodeAffinityArgs', expected 'InterPodAffinityArgs'",
        "line 15, profiles[0].pluginConfig[1].args.hardPodAffinityWeight: found the string 'heavy', expected an integer",
        "line 16, profiles[1].schedulerName: each of several profiles needs a schedulerName",
    ]


def test_other_versions_are_refused() -> None:
    with pytest.raises(PolicyError, match=r"expected 'kubescheduler.config.k8s.io/v1'"):
        load("apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n", CATALOGUE)


def test_a_resource_may_have_the_weight_0() -> None:
    policy = read("""\
        profiles:
        - pluginConfig:
          - name: NodeResourcesFit
            args: {scoringStrategy: {resources: [{name: cpu, weight: 0}]}}
        """)
    fit = policy.plugin("NodeResourcesFit")
    assert fit is not None
    strategy = fit.arguments["scoringStrategy"]
    assert isinstance(strategy, dict) and weighted(strategy["resources"]) == (("cpu", 1),)


def test_a_version_that_kubernetes_dropped_is_named_as_that() -> None:
    with pytest.raises(PolicyError, match="v1beta2', which Kubernetes no longer reads, expected"):
        load("apiVersion: kubescheduler.config.k8s.io/v1beta2\nkind: KubeSchedulerConfiguration\n", CATALOGUE)


@pytest.mark.parametrize(
    ("plugin", "args", "told"),
    [
        ("InterPodAffinity", "{hardPodAffinityWeight: 101}", ".hardPodAffinityWeight: found 101, expected 100 or less"),
        ("DefaultPreemption", "{minCandidateNodesPercentage: 200}", ".minCandidateNodesPercentage: found 200, expected 100 or less"),
        (
            "DefaultPreemption",
            "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}",
            ": found 0 for minCandidateNodesPercentage and minCandidateNodesAbsolute, expected one above 0",
        ),
        (
            "NodeResourcesFit",
            "{scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1000}]}}",
            ".scoringStrategy.resources[0].weight: found 1000, expected 100 or less",
        ),
        (
            "NodeResourcesFit",
            "{scoringStrategy: {type: RequestedToCapacityRatio}}",
            ".scoringStrategy: type is RequestedToCapacityRatio, expected requestedToCapacityRatio with a shape",
        ),
        (
            "NodeResourcesFit",
            "{scoringStrategy: {requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}]}}}",
            ".scoringStrategy.requestedToCapacityRatio: expected nothing here with type LeastAllocated",
        ),
        (
            "NodeResourcesFit",
            "{scoringStrategy: {type: RequestedToCapacityRatio,"
            " requestedToCapacityRatio: {shape: [{utilization: 50, score: 0}, {utilization: 50, score: 9}]}}}",
            ".scoringStrategy.requestedToCapacityRatio.shape: expected utilization in increasing order",
        ),
        (
            "NodeResourcesBalancedAllocation",
            "{resources: [{name: cpu, weight: 2}]}",
            ".resources[0].weight: found 2, expected 1 or less",
        ),
        (
            "PodTopologySpread",
            "{defaultingType: List, defaultConstraints: [{maxSkew: 0, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]}",
            ".defaultConstraints[0]: PodTopologySpreadArgs: maxSkew: found 0, expected an integer of 1 or more",
        ),
        (
            "PodTopologySpread",
            "{defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]}",
            ".defaultConstraints: found constraints with defaultingType System, expected defaultingType: List",
        ),
    ],
)
def test_args_that_kube_scheduler_refuses_are_refused(plugin: str, args: str, told: str) -> None:
    text = f"profiles:\n- pluginConfig:\n  - name: {plugin}\n    args: {args}\n"
    assert mistakes(text) == [f"line 6, profiles[0].pluginConfig[0].args{told}"]


def test_a_plugin_of_scheduler_plugins_is_named_with_what_there_is_instead() -> None:
    told = mistakes("profiles:\n- plugins: {multiPoint: {enabled: [{name: Coscheduling}]}}\n")
    assert told[0].startswith("line 4, profiles[0].plugins.multiPoint.enabled[0]: scheduler-plugins has the plugin 'Coscheduling'")
    assert "docs/groups.md" in told[0]
