"""KAI's SchedulingShard and Config as a policy."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from navarch.engine.policy import PRESETS, Policy, PolicyError, load
from navarch.installed import installed


def shard(name: str = "default", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "kai.scheduler/v1", "kind": "SchedulingShard", "metadata": {"name": name}, "spec": spec}


def config(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "kai.scheduler/v1", "kind": "Config", "metadata": {"name": "kai-config"}, "spec": spec}


def read(*objects: dict[str, Any], name: str = "") -> Policy:
    return load("---\n".join(yaml.safe_dump(each, sort_keys=False) for each in objects), installed().catalogue(), "f", shard=name)


def plugins(policy: Policy) -> list[str]:
    return [plugin.name for tier in policy.tiers for plugin in tier]


def arguments(policy: Policy, plugin: str) -> dict[str, object]:
    return next(dict(each.arguments) for tier in policy.tiers for each in tier if each.name == plugin)


def mistakes(*objects: dict[str, Any], name: str = "") -> list[str]:
    with pytest.raises(PolicyError) as caught:
        read(*objects, name=name)
    return [str(each) for each in caught.value.mistakes]


def test_an_empty_shard_is_what_the_preset_runs() -> None:
    preset = load(PRESETS["kai"], installed().catalogue())
    found = read(shard())
    assert (found.actions, found.compat, found.warnings) == (preset.actions, "kai", ())
    assert plugins(found) == plugins(preset)
    assert found.params["schedulerName"] == "kai-scheduler"
    assert found.chosen == "it is KAI's SchedulingShard default"


def test_spreading_replaces_packing_and_ends_consolidation() -> None:
    found = read(shard(placementStrategy={"gpu": "spread"}))
    assert "consolidation" not in found.actions
    assert "gpuspread" in plugins(found) and not {"gpupack", "gpusharingorder"} & set(plugins(found))
    assert arguments(found, "nodeplacement") == {"gpu": "spread", "cpu": "binpack"}


def test_plugins_and_actions_are_switched_ordered_and_given_arguments_by_name() -> None:
    changes = {
        "ray": {"enabled": False},
        "kubeflow": {"priority": 2000},
        "numa": {"priority": 50, "arguments": {"reconstructAvailable": "false"}},
        "nodeplacement": {"arguments": {"gpu": "spread"}},
    }
    found = read(shard(plugins=changes, actions={"preempt": {"priority": 350}, "consolidation": {"enabled": False}}))
    assert plugins(found)[0] == "kubeflow" and plugins(found)[-1] == "numa" and "ray" not in plugins(found)
    assert arguments(found, "numa") == {"reconstructAvailable": False}
    assert arguments(found, "nodeplacement") == {"gpu": "spread"}, "arguments replace the defaults as a whole"
    assert found.actions == ("allocate", "preempt", "reclaim", "stalegangeviction")


def test_fields_of_the_shard_and_of_the_config_reach_plugins_and_parameters() -> None:
    spec: dict[str, Any] = {
        "kValue": 0.5,
        "minRuntime": {"reclaimMinRuntime": "10m"},
        "partitionLabelValue": "blue",
        "queueDepthPerAction": {"reclaim": 5},
        "scenarioSearchBudgets": {"maxJobSearchDuration": "1m"},
        "args": {"default-staleness-grace-period": "2m", "max-consolidation-preemptees": "3"},
    }
    found = read(shard(**spec), config(**{"global": {"schedulerName": "mine", "nodePoolLabelKey": "pool", "queueLabelKey": "q"}}))
    assert arguments(found, "proportion")["kValue"] == 0.5
    assert arguments(found, "minruntime") == {"defaultReclaimMinRuntime": 600.0}
    assert (found.queue_depth, found.search_budgets) == ({"reclaim": 5}, {"maxJobSearchDuration": 60.0})
    wanted: dict[str, object] = {"schedulerName": "mine", "nodePoolLabelKey": "pool"}
    wanted |= {"queueLabelKey": "q", "partitionLabelValue": "blue"}
    wanted |= {"globalDefaultStalenessGracePeriod": 120.0, "maxNumberConsolidationPreemptees": 3}
    assert {key: found.params[key] for key in wanted} == wanted


@pytest.mark.parametrize(
    ("prometheus", "address"),
    [
        ({"enabled": True}, "http://usage-prometheus.kai.svc.cluster.local:9090"),
        ({"externalPrometheusUrl": "http://here:9090"}, "http://here:9090"),
    ],
)
def test_usage_is_read_from_the_prometheus_of_the_config(prometheus: dict[str, Any], address: str) -> None:
    found = read(shard(usageDBConfig={"clientType": "prometheus"}), config(namespace="kai", prometheus=prometheus))
    assert found.usage["connectionString"] == address


def test_fields_without_effect_are_named_with_their_path() -> None:
    objects = shard(goMemLimit="1Gi", args={"qps": "100"}, novelty=1), config(binder={"replicas": 2}, **{"global": {"jsonLog": True}})
    assert [text.partition(": ")[0] for text in read(*objects).warnings] == [
        "line 6, items[0].spec.goMemLimit",
        "line 9, items[0].spec.novelty",
        "line 15, items[1].spec",
        "line 19, items[1].spec.global.jsonLog",
        "line 8, items[0].spec.args.qps",
    ]


def test_a_warning_of_the_loader_names_the_field_of_the_shard() -> None:
    (warning,) = read(shard(plugins={"proportion": {"arguments": {"kValu": "1"}}})).warnings
    assert warning.startswith("line 9, spec.plugins.proportion.arguments.kValu: unknown argument of")


def test_one_of_several_shards_is_chosen_by_its_name() -> None:
    both = shard("a"), shard("b", kValue=2)
    assert arguments(read(*both, name="b"), "proportion")["kValue"] == 2.0
    assert mistakes(*both) == ["found SchedulingShard a, b, expected one; --shard NAME chooses it"]
    assert mistakes(*both, name="c") == ["found SchedulingShard a, b, expected SchedulingShard c"]
    with pytest.raises(PolicyError, match="found no SchedulingShard of KAI, expected a"):
        load(PRESETS["kai"], installed().catalogue(), shard="a")


@pytest.mark.parametrize(
    ("spec", "mistake"),
    [
        ({"placementStrategy": {"cpu": "stack"}}, "line 7, spec.placementStrategy.cpu: found 'stack', expected binpack or spread"),
        ({"plugins": {"ray": {"enabled": "no"}}}, "line 8, spec.plugins.ray.enabled: found 'no', expected true or false"),
        ({"actions": {"preempt": {"priority": True}}}, "line 8, spec.actions.preempt.priority: found True, expected a whole number"),
        (
            {"queueDepthPerAction": {"preempt": 1}, "actions": {"preempt": {"enabled": False}}},
            "line 7, spec.queueDepthPerAction.preempt: found 'preempt', expected one of the actions "
            "allocate, consolidation, reclaim, stalegangeviction",
        ),
        (
            {"usageDBConfig": {"clientType": "prometheus"}},
            "line 6, spec.usageDBConfig: found no connectionString, and no Prometheus in a Config, expected one of them",
        ),
        ({"actions": {"mine": {"priority": 5}}}, "line 7, spec.actions.mine: unknown action 'mine'"),
        ({"args": "--v=3"}, "line 6, spec.args: found '--v=3', expected a mapping"),
    ],
)
def test_mistakes_name_the_field(spec: dict[str, Any], mistake: str) -> None:
    assert mistakes(shard(**spec)) == [mistake]


def test_other_documents_in_one_file_are_refused() -> None:
    with pytest.raises(PolicyError, match="line 3: found 2 documents, expected one"):
        load("actions: allocate\n---\nactions: preempt\n", installed().catalogue())
