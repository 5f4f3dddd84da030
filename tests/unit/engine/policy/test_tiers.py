"""The form with tiers: exact keys, strict refusals with lines, and what each compat does instead."""

from __future__ import annotations

from textwrap import dedent

import pytest
from tests.worlds.policy_catalogue import CATALOGUE

from navarch.engine.policy import PRESETS, Policy, PolicyError, load, preset


def read(text: str) -> Policy:
    return load(dedent(text), CATALOGUE, "test.yaml")


def mistakes(text: str) -> list[str]:
    with pytest.raises(PolicyError) as raised:
        read(text)
    return [str(mistake) for mistake in raised.value.mistakes]


VOLCANO = """\
actions: "enqueue, allocate,backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
- plugins:
  - name: drf
    enableHierarchy: true
  - name: binpack
    enabledHyperNodeOrder: false
    enableJobEnqueued: false
    arguments:
      binpack.weight: 5
      binpack.resources: nvidia.com/gpu
      binpack.resources.nvidia.com/gpu: 7
configurations:
- name: allocate
  arguments:
    predicateErrorCacheEnable: false
metrics:
  type: prometheus
  address: http://prometheus:9090
"""


def test_volcanos_file_loads_as_it_is() -> None:
    policy = read(VOLCANO)
    assert policy.actions == ("enqueue", "allocate", "backfill")
    assert [[o.name for o in tier] for tier in policy.tiers] == [["priority", "gang"], ["drf", "binpack"]]
    gang, drf, binpack = (policy.plugin(n) for n in ("gang", "drf", "binpack"))
    assert gang and drf and binpack
    assert not gang.is_enabled("preemptable") and gang.is_enabled("reclaimable") and gang.is_enabled("job_valid")
    assert drf.is_enabled("hierarchy") and not gang.is_enabled("hierarchy")
    assert not binpack.is_enabled("hyper_node_order")
    assert not binpack.is_enabled("job_enqueueable") and not binpack.is_enabled("job_enqueued")
    assert binpack.arguments["binpack.resources.nvidia.com/gpu"] == 7
    assert policy.configurations == {"allocate": {"predicateErrorCacheEnable": False}}
    assert policy.metrics["address"] == "http://prometheus:9090"
    assert (policy.compat, policy.dialect) == ("strict", "navarch")
    assert gang.line == 5


def test_strict_names_every_mistake_with_its_line() -> None:
    found = mistakes("""\
        actions: "enqueue, alocate, shuffle"
        tiers:
        - plugins:
          - name: gnag
          - name: gang
            enabledPreemptable: false
            enableJobReady: "yes please"
          - name: rescheduling
        - plugins:
          - name: binpack
            arguments:
              binpack.weight: "5"
              binpack.wieght: 5
          - name: gang
        configurations:
        - name: preempt
          arguments: {minCandidateNodesPercentage: lots}
        tires: []
        """)
    assert found == [
        "line 1, actions: unknown action 'alocate' (did you mean 'allocate'?)",
        "line 1, actions: Volcano has the action 'shuffle', Navarch has not",
        "line 4, tiers[0].plugins[0].name: unknown plugin 'gnag' (did you mean 'gang'?)",
        "line 6, tiers[0].plugins[1].enabledPreemptable: unknown key of a plugin 'enabledPreemptable'"
        " (did you mean 'enablePreemptable'?)",
        "line 7, tiers[0].plugins[1].enableJobReady: found 'yes please', expected true or false",
        "line 8, tiers[0].plugins[2].name: Volcano has the plugin 'rescheduling', Navarch has not",
        "line 12, tiers[1].plugins[0].arguments.binpack.weight: argument 'binpack.weight' of plugin binpack:"
        " found the string '5', expected an integer",
        "line 13, tiers[1].plugins[0].arguments.binpack.wieght: unknown argument of plugin binpack 'binpack.wieght'"
        " (did you mean 'binpack.weight'?)",
        "line 14, tiers[1].plugins[1]: plugin 'gang' is named twice (first on line 5)",
        "line 17, configurations[0].arguments.minCandidateNodesPercentage: argument 'minCandidateNodesPercentage' of"
        " action preempt: found the string 'lots', expected an integer",
        "line 18, tires: unknown key 'tires' (did you mean 'tiers'?)",
    ]


def test_volcano_skips_what_it_does_not_know_and_takes_defaults_in_silence() -> None:
    policy = read("""\
        compat: volcano
        actions: enqueue, allocate, shuffle
        tiers:
        - plugins:
          - name: gnag
          - name: rescheduling
          - name: binpack
            enabledPreemptable: false
            arguments:
              binpack.weight: "5"
              binpack.cpu: 3
          - name: predicates
            arguments: {predicate.NodePortsEnable: "false"}
          - name: overcommit
            arguments: {overcommit-factor: 2}
        """)
    assert policy.actions == ("enqueue", "allocate")
    assert [o.name for o in policy.plugins] == ["binpack", "predicates", "overcommit"]
    assert [dict(o.arguments) for o in policy.plugins] == [
        {"binpack.cpu": 3},
        {"predicate.NodePortsEnable": False},
        {"overcommit-factor": 2.0},
    ]
    assert len(policy.warnings) == 5
    assert policy.semantics.victims_first_tier_decides and policy.semantics.node_order == "listed"


def test_an_argument_without_effect_loads_with_a_warning() -> None:
    policy = read("actions: allocate\ntiers: []\nconfigurations:\n- name: allocate\n  arguments: {retired: 3}\n")
    (warning,) = [str(each) for each in policy.warnings if "retired" in str(each)]
    where, what = warning.split(": ", 1)
    assert where == "line 5, configurations[0].arguments.retired"
    assert what == "argument 'retired' of action allocate has no effect: nothing reads it"
    assert policy.configurations == {"allocate": {"retired": 3}}


@pytest.mark.parametrize("key", ["enabledClusterOrder", "enableBestNode", "enableTargetJob", "enableReservedNodes"])
@pytest.mark.parametrize("compat", ["strict", "volcano"])
def test_a_switch_of_a_point_that_no_action_asks_loads_with_a_warning(compat: str, key: str) -> None:
    policy = read(f"compat: {compat}\nactions: allocate\ntiers:\n- plugins:\n  - name: gang\n    {key}: true\n")
    assert [str(each) for each in policy.warnings] == [
        f"line 6, tiers[0].plugins[0].{key}: no action asks this extension point; the switch has no effect"
    ]


def test_an_unknown_action_refuses_the_file_everywhere() -> None:
    for compat in ("volcano", "kube-batch", "kai"):
        assert "unknown action 'fly'" in mistakes(f"compat: {compat}\nactions: fly\ntiers: []\n")[0]


def test_kube_batch_reads_arguments_from_text_and_ignores_later_switches() -> None:
    policy = read("""\
        compat: kube-batch
        actions: "reclaim, allocate, backfill, preempt"
        tiers:
        - plugins:
          - name: gang
            enableJobStarving: false
            enableJobOrder: false
          - name: nodeorder
            arguments: {nodeaffinity.weight: "3"}
        """)
    gang, nodeorder = policy.plugins
    assert gang.is_enabled("job_starving") and not gang.is_enabled("job_order")
    assert nodeorder.arguments == {"nodeaffinity.weight": 3}
    assert "enableJobStarving" in policy.warnings[0]


def test_a_peer_skips_plugins_and_refuses_actions_that_only_others_have() -> None:
    policy = read("compat: kube-batch\nactions: allocate\ntiers: [{plugins: [{name: binpack}, {name: oldest}]}]\n")
    assert [option.name for option in policy.plugins] == ["oldest"]
    assert policy.warnings == (
        "line 3, tiers[0].plugins[0].name: kube-batch has no plugin 'binpack', it is one of Volcano; skipped as kube-batch does",
    )
    assert mistakes("compat: kube-batch\nactions: enqueue, allocate\ntiers: []\n") == [
        "line 2, actions: kube-batch has no action 'enqueue', only Volcano has"
    ]


def test_gang_reclaim_needs_a_plugin_that_guards_shares_there() -> None:
    policy = read("actions: gangreclaim\ntiers: [{plugins: [{name: gang}, {name: proportion}]}]\n")
    assert "proportion is not asked in gangreclaim" in policy.warnings[0]


def test_hierarchical_drf_beside_proportion() -> None:
    tiers = [{"plugins": [{"name": "drf", "enableHierarchy": True}, {"name": "proportion"}]}]
    text = "compat: volcano\nactions: allocate\ntiers: [{plugins: [{name: drf, enableHierarchy: true}, {name: proportion}]}]"
    assert "Volcano refuses the pair" in mistakes(text)[0]
    with pytest.raises(PolicyError, match="Volcano refuses the pair"):
        load({"actions": "allocate", "tiers": tiers}, CATALOGUE)
    policy = load({"compat": "volcano", "actions": "allocate", "tiers": tiers}, CATALOGUE)
    assert any("in tier order decides" in warning for warning in policy.warnings)


def test_decoded_mappings_with_lists_and_parameters() -> None:
    document: dict[str, object] = {
        "actions": ["enqueue", "allocate"],
        "tiers": [{"plugins": [{"name": "gang"}]}],
        "schedulerParams": {"shardingMode": "hard", "nodesInShard": ["n1"], "shard-name": "x"},
    }
    with pytest.raises(PolicyError, match=r"schedulerParams.shard-name: unknown scheduler parameter"):
        load(document, CATALOGUE)
    document["schedulerParams"] = {"shardingMode": "hard", "nodesInShard": ["n1"], "default-queue": "research"}
    policy = load(document, CATALOGUE)
    assert policy.params == {"shardingMode": "hard", "nodesInShard": ["n1"], "defaultQueue": "research"}
    assert policy.param("shardName") == "volcano" and policy.param("defaultQueue") == "research"
    assert load(policy.document, CATALOGUE) == policy


def test_documents_that_are_no_policy() -> None:
    assert mistakes("actions: allocate\ntiers: ]\n")[0].startswith("line 2: not valid YAML: ")
    assert "expected a mapping" in mistakes("- a\n- b\n")[0]
    assert "found nothing" in mistakes("")[0]
    assert "expected one of strict, volcano" in mistakes("compat: slurm\nactions: allocate\n")[0]
    assert mistakes("actions: allocate\nactions: backfill\ntiers: []\n") == ["line 2, actions: this key is given twice"]
    assert "expected a list" in mistakes("actions: allocate\ntiers: {plugins: []}\n")[0]
    assert mistakes("hello") == ["found the string 'hello', expected a mapping with `actions` and `tiers`"]
    assert "expected a name" in mistakes("actions: allocate\ntiers:\n- plugins:\n  - arguments: {}\n")[0]


def test_each_wrong_entry_is_told_once_and_where_it_stands() -> None:
    assert mistakes("actions: 5\ntiers: []\n") == [
        "line 1, actions: found 5, expected a comma list such as 'enqueue, allocate', or a list"
    ]
    assert mistakes("actions: [allocate, 7, null]\ntiers: []\n") == [
        "line 1, actions[1]: found 7, expected a name",
        "line 1, actions[2]: found nothing, expected a name",
    ]
    assert mistakes("actions: allocate\ntiers:\n- plugins:\n  - gang\n  - null\n") == [
        "line 4, tiers[0].plugins[0]: found the string 'gang', expected a mapping with the name of a plugin",
        "line 5, tiers[0].plugins[1]: found nothing, expected a mapping with the name of a plugin",
    ]


@pytest.mark.parametrize(
    ("number", "shown"), [("1" + 22 * "0", "1" + 22 * "0"), ("-1" + 99 * "0", "-1000000000000000000... (100 digits)")]
)
def test_a_number_beyond_64_bits_is_refused_or_leaves_the_default(number: str, shown: str) -> None:
    text = f"actions: allocate\ntiers:\n- plugins:\n  - name: binpack\n    arguments: {{binpack.weight: {number}}}\n"
    told = f"argument 'binpack.weight' of plugin binpack: found {shown}, expected an integer of 64 bits"
    assert mistakes(text) == [f"line 5, tiers[0].plugins[0].arguments.binpack.weight: {told}"]
    policy = read(f"{text}compat: volcano\n")
    assert "binpack.weight" not in policy.plugins[0].arguments
    assert any(f"{told}; its default (1) is used" in warning for warning in policy.warnings)


def test_switches_of_early_kube_batch_are_told_with_the_switch_of_later_releases() -> None:
    text = "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n    disableJobOrder: true\n    disableJobReady: false\n"
    at, told = "tiers[0].plugins[0]", "is a switch of kube-batch up to 0.4; write"
    first = f"line 5, {at}.disableJobOrder: 'disableJobOrder' {told} `enableJobOrder: false`"
    second = f"line 6, {at}.disableJobReady: 'disableJobReady' {told} `enableJobReady: true`"
    assert mistakes(text) == [first, second]
    policy = read(f"{text}compat: kube-batch\n")
    assert policy.warnings == tuple(f"{each}; ignored, as later releases do" for each in (first, second))
    assert policy.plugins[0].is_enabled("job_order")


def test_a_config_map_is_read_for_what_it_holds() -> None:
    found = mistakes("""\
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: volcano-scheduler-configmap}
        data:
          scheduler.conf: |
            actions: "allocate"
            tiers:
            - plugins:
              - name: gnag
        """)
    assert found == ["line 9, tiers[0].plugins[0].name: unknown plugin 'gnag' (did you mean 'gang'?)"]


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_presets_load(name: str) -> None:
    policy = preset(name, CATALOGUE)
    ours = dict.fromkeys(("navarch", "easy", "fifo", "fifo-skip", "sjf", "packing"), "strict") | {"kube-batch-early": "kube-batch"}
    assert policy.compat == ours.get(name, name)
    assert policy.actions and policy.plugins
