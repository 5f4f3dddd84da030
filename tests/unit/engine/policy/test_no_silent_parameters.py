"""No silent parameters: whatever a policy file can say is read by the code, or the loader warns that it has no effect."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

import navarch
from navarch.engine.arguments import Argument
from navarch.engine.policy import PolicyError, load
from navarch.engine.policy.kube_scheduler.configuration import OF_THE_PROCESS
from navarch.engine.policy.kube_scheduler.default_plugins import ARGS, DEFAULTS, GROUP_POINTS, IMPLEMENTS
from navarch.engine.policy.scheduler_params import FLAGS, PARAMETERS
from navarch.engine.policy.schema import Fields, Nested
from navarch.engine.policy.search_budgets import FIELDS
from navarch.engine.policy.sections import METRICS, USAGE
from navarch.installed import installed
from navarch.offline.plan import plan

SOURCES = Path(navarch.__file__).parent
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
FIELD = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}


@cache
def read_names() -> frozenset[str]:
    """String constants of the sources, without those that only declare a parameter or name its flag."""
    found: set[str] = set()
    for path in sorted(SOURCES.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        declared = {
            id(node.args[0]) for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args and _is_declaration(node.func)
        }
        if path.name == "scheduler_params.py":
            continue
        constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in declared)
        found |= {node.value for node in constants if isinstance(node.value, str)}
    return frozenset(found)


@cache
def made_names() -> tuple[re.Pattern[str], ...]:
    """Names that the sources put together: `f"predicate.{name}Enable"`."""
    found: set[str] = set()
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [re.escape(str(part.value)) if isinstance(part, ast.Constant) else r"\w+" for part in node.values]
                if len("".join(part for part in parts if part != r"\w+")) > 5:
                    found.add("".join(parts))
    return tuple(re.compile(text) for text in sorted(found))


def _is_declaration(called: ast.expr) -> bool:
    return isinstance(called, ast.Name) and called.id in ("Argument", "Nested")


def is_read(argument: Argument) -> bool:
    name = argument.name
    if name.endswith("*"):
        return name == "*" or any(name[:-1] in text for text in read_names())
    return name in read_names() or any(pattern.fullmatch(name) for pattern in made_names())


def leaves(fields: Fields, way: str = "") -> Iterator[tuple[str, Argument]]:
    for field in fields:
        if isinstance(field, Nested) or field.fields:
            yield from leaves(field.fields, f"{way}{field.name}.")
        else:
            yield f"{way}{field.name}", field


def declared() -> Iterator[tuple[str, Argument]]:
    catalogue = installed().catalogue()
    for kind, entries in (("plugin", catalogue.plugins), ("action", catalogue.actions)):
        for name in entries:
            yield from ((f"{kind} {name}: {way}", argument) for way, argument in leaves(entries[name].arguments or ()))
    for name, argument in PARAMETERS.items():
        yield f"schedulerParams: {name}", argument
    for where, fields in (("metrics", METRICS), ("usageDBConfig", USAGE), ("scenarioSearchBudgets", FIELDS)):
        yield from ((f"{where}: {way}", argument) for way, argument in leaves(fields))
    for plugin, fields in ARGS.items():
        yield from ((f"KubeSchedulerConfiguration: {plugin}Args.{way}", argument) for way, argument in leaves(fields))


def test_every_parameter_is_read_or_said_to_have_no_effect() -> None:
    silent = [where for where, argument in declared() if argument.has_effect and not is_read(argument)]
    assert silent == []


def test_parameters_without_effect_say_why() -> None:
    assert [where for where, argument in declared() if not argument.has_effect and len(argument.doc.split()) < 3] == []


@pytest.mark.parametrize("name", [name for name, argument in PARAMETERS.items() if not argument.has_effect])
def test_a_scheduler_parameter_without_effect_is_warned_of_in_every_form(name: str) -> None:
    value: object = {"list": ["x"], "int": 7, "bool": True}.get(PARAMETERS[name].kind, "x")
    flag = next(flag for flag, own in FLAGS.items() if own == name)
    for document in (
        {"actions": "allocate", "tiers": [{"plugins": [{"name": "gang"}]}]},
        {"actions": "allocate", "plugins": "gang"},
        {"compat": "volcano", "actions": "allocate", "tiers": [{"plugins": [{"name": "gang"}]}]},
        {"compat": "kai"},
        {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"},
    ):
        for spelt in (name, flag):
            warnings = load({**document, "schedulerParams": {spelt: value}}, installed().catalogue(), "p").warnings
            assert any(name in warning and "has no effect" in warning for warning in warnings), (document, warnings)


@pytest.mark.parametrize("name", ["kube-api-qps", "schedule-period", "schedulePeriod", "numOfStatusRecordingWorkers", "feature-gates"])
@pytest.mark.parametrize("compat", ["strict", "volcano", "kai"])
def test_a_flag_of_a_process_is_named_where_a_file_has_it(name: str, compat: str) -> None:
    document = {"compat": compat, "actions": "allocate", "tiers": [{"plugins": []}], "schedulerParams": {name: "1"}}
    (told,) = [text for text in load(document, installed().catalogue(), "p").warnings if name in text]
    assert f"{name} has no effect in a policy file: " in told


@pytest.mark.parametrize("key", sorted(OF_THE_PROCESS))
def test_a_setting_of_the_process_is_in_effect_or_warned_of(key: str) -> None:
    document = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", key: 3}
    policy = load(document, installed().catalogue(), "p")
    assert any(key in warning for warning in policy.warnings) or policy.backoff != (1.0, 10.0)


def test_metrics_are_warned_of() -> None:
    document = {"compat": "volcano", "actions": "allocate", "tiers": [{"plugins": [{"name": "gang"}]}]}
    policy = load({**document, "metrics": {"type": "prometheus", "address": "http://x"}}, installed().catalogue(), "p")
    assert any("metrics" in warning for warning in policy.warnings)


def test_back_off_seconds_are_in_effect() -> None:
    document = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    given = {**document, "podInitialBackoffSeconds": 2, "podMaxBackoffSeconds": 4}
    assert load(given, installed().catalogue(), "p").backoff == (2.0, 4.0)
    with pytest.raises(PolicyError, match="podMaxBackoffSeconds: found 1, expected no less than podInitialBackoffSeconds"):
        load({**document, "podInitialBackoffSeconds": 2, "podMaxBackoffSeconds": 1}, installed().catalogue(), "p")


def test_the_label_that_names_a_pods_queue_is_in_effect() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "lab", "uid": "p", "labels": {"example.com/queue": "team"}},
        "spec": {"schedulerName": "kai-scheduler", "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
    }
    policy = {"compat": "kai", "schedulerParams": {"queueLabelKey": "example.com/queue"}}
    (job,) = plan([pod], policy=policy).to_dict()["cycles"][0]["jobs"]
    assert job["queue"] == "team"


def test_nodes_with_none_of_the_labels_of_volcanos_node_selector_are_left_alone() -> None:
    def node(name: str, **labels: str) -> dict[str, Any]:
        status = {"allocatable": {"cpu": "4", "pods": "10"}, "conditions": [{"type": "Ready", "status": "True"}]}
        return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}

    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{number}", "namespace": "lab"},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]},
        }
        for number in range(4)
    ]
    nodes = [node("a", role="train"), node("b", role="serve"), node("c", role="web"), node("d")]
    policy: dict[str, Any] = {"actions": "allocate", "tiers": [{"plugins": [{"name": "predicates"}]}]}
    policy["schedulerParams"] = {"node-selector": ["role:train", "role:serve"]}
    assert sorted(bind.node for bind in plan([*nodes, *pods], policy=policy).binds) == ["a", "b"]
    policy["schedulerParams"] = {"node-selector": ["role"]}
    with pytest.raises(PolicyError, match="found 'role', expected a label as KEY:VALUE"):
        plan([*nodes, *pods], policy=policy)


GIVEN: dict[str, dict[str, Any]] = {
    "volcano": {
        "compat": "volcano",
        "actions": "enqueue, allocate, preempt, backfill, reclaim",
        "tiers": [
            {"plugins": [{"name": "priority"}, {"name": "gang", "arguments": {}}]},
            {"plugins": [{"name": name, "arguments": {}} for name in ("overcommit", "drf", "predicates", "proportion", "nodeorder")]},
        ],
        "configurations": [{"name": "enqueue", "arguments": {}}],
        "metrics": {"type": "prometheus", "address": "http://x"},
        "schedulerParams": {},
    },
    "strict": {
        "actions": "allocate",
        "tiers": [{"plugins": [{"name": "gang", "arguments": {}}]}],
        "configurations": [{"name": "allocate", "arguments": {}}],
        "schedulerParams": {},
    },
    "kai": {
        "compat": "kai",
        "actions": "allocate, consolidation, reclaim, preempt",
        "tiers": [
            {"plugins": [{"name": name, "arguments": {}} for name in ("predicates", "proportion", "minruntime", "nodeplacement")]}
        ],
        "queueDepthPerAction": {"allocate": 5},
        "usageDBConfig": {"clientType": "prometheus", "connectionString": "http://x", "usageParams": {}},
        "scenarioSearchBudgets": {},
        "schedulerParams": {},
    },
    "flat map": {
        "compat": "kube-batch",
        "actions": "allocate",
        "plugins": "gang",
        "plugin.gang.jobready": "true",
        "schedulerParams": {},
    },
    "kube-scheduler": {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": "a",
                "plugins": {
                    "multiPoint": {"enabled": [{"name": "NodeAffinity", "weight": 2}], "disabled": [{"name": "ImageLocality"}]},
                    "score": {"enabled": [{"name": "NodeResourcesFit"}]},
                },
                "pluginConfig": [
                    {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"resources": [{"name": "cpu", "weight": 1}]}}},
                    {"name": "NodeAffinity", "args": {"addedAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [FIELD]}]}}}},
                    {"name": "PodTopologySpread", "args": {"defaultConstraints": [SPREAD], "defaultingType": "List"}},
                    *({"name": name, "args": {}} for name in ("DefaultPreemption", "InterPodAffinity", "VolumeBinding")),
                ],
            }
        ],
        "extenders": [{"urlPrefix": "http://x", "filterVerb": "f", "managedResources": [{"name": "a/b"}], "tlsConfig": {}}],
        "schedulerParams": {},
    },
    "SchedulingShard": {
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            {
                "apiVersion": "kai.scheduler/v1",
                "kind": "SchedulingShard",
                "metadata": {"name": "default"},
                "spec": {
                    "args": {"v": "4"},
                    "placementStrategy": {"gpu": "binpack", "cpu": "binpack"},
                    "partitionLabelValue": "x",
                    "queueDepthPerAction": {"allocate": 5},
                    "minRuntime": {"preemptMinRuntime": "1m"},
                    "kValue": 1.0,
                    "usageDBConfig": {"clientType": "prometheus", "usageParams": {}},
                    "scenarioSearchBudgets": {"maxActionSearchDuration": {"default": "5m"}},
                    "plugins": {"minruntime": {"enabled": True, "priority": 3, "arguments": {}}},
                    "actions": {"preempt": {"enabled": True, "priority": 3}},
                },
            },
            {
                "apiVersion": "kai.scheduler/v1",
                "kind": "Config",
                "metadata": {"name": "kai-config"},
                "spec": {"namespace": "kai", "global": {"schedulerName": "k"}, "prometheus": {"enabled": True}},
            },
        ],
    },
}
OF_THE_API: Final = [(), ("items", 0), ("items", 0, "metadata"), ("items", 1), ("items", 1, "metadata")]
"""Parts of the list and of its objects that are Kubernetes' own, in the form SchedulingShard."""


def mappings(value: Any, way: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The ways to all mappings of a document."""
    if isinstance(value, dict):
        yield way
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in inside:
        yield from mappings(inner, (*way, key))


@pytest.mark.parametrize("form", GIVEN)
def test_a_word_that_no_form_knows_is_named_wherever_it_stands(form: str) -> None:
    catalogue = installed().catalogue()
    load(GIVEN[form], catalogue, "p")
    silent = []
    for way in mappings(GIVEN[form]):
        if form == "SchedulingShard" and way in OF_THE_API:
            continue
        document = copy.deepcopy(GIVEN[form])
        place: Any = document
        for step in way:
            place = place[step]
        place["zzUnheardOf"] = "1"
        try:
            told = list(load(document, catalogue, "p").warnings)
        except PolicyError as error:
            told = [str(error)]
        if not any("zzUnheardOf" in text for text in told):
            silent.append(way)
    assert silent == []


def test_plugins_for_groups_are_in_effect_with_gang_scheduling_and_said_not_to_be_without() -> None:
    document = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    for gangs in (True, False):
        names = ["TopologyPlacementGenerator", "PodGroupPodsCount", *(["GangScheduling"] if gangs else [])]
        plugins = {"multiPoint": {"enabled": [{"name": name} for name in names]}}
        warnings = load({**document, "profiles": [{"plugins": plugins}]}, installed().catalogue(), "p").warnings
        told = [any(name in warning for warning in warnings) for name in names[:2]]
        assert told == [not gangs, not gangs]


@pytest.mark.parametrize("point", GROUP_POINTS)
def test_the_points_of_groups_have_no_switch_and_it_is_said(point: str) -> None:
    document = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    for word, given in (
        ("not switched off", {"disabled": [{"name": "*"}]}),
        ("not asked", {"enabled": [{"name": "NodeResourcesFit", "weight": 3}]}),
    ):
        plugins = {"multiPoint": {"enabled": [{"name": "GangScheduling"}]}, point: given}
        warnings = load({**document, "profiles": [{"plugins": plugins}]}, installed().catalogue(), "p").warnings
        assert any(f"{word} at {point}" in warning for warning in warnings)


@pytest.mark.parametrize("star", [False, True])
@pytest.mark.parametrize(("name", "point"), [(name, point) for name, _ in DEFAULTS for point in ("multiPoint", *IMPLEMENTS[name])])
def test_a_plugin_that_a_profile_switches_off_is_off_or_said_to_be_on(name: str, point: str, star: bool) -> None:
    document = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    catalogue = installed().catalogue()
    usual = load(document, catalogue, "p")
    off = {"disabled": [{"name": "*" if star else name}]}
    try:
        policy = load({**document, "profiles": [{"plugins": {point: off}}]}, catalogue, "p")
    except PolicyError as error:
        assert "queueSort" in str(error) or "bind" in str(error)
        return
    here = [(dict(each.enabled), dict(each.arguments)) for each in policy.plugins if each.name == name]
    before = [(dict(each.enabled), dict(each.arguments)) for each in usual.plugins if each.name == name]
    changed = here != before or policy.configurations != usual.configurations
    assert changed or any(name in warning for warning in policy.warnings)


def test_arguments_of_a_plugin_that_does_not_run_are_named() -> None:
    document = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    configs = [{"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": 10}}, {"name": "ImageLocality", "args": {}}]
    configs.append({"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 3}})
    profile = {"plugins": {"multiPoint": {"disabled": [{"name": "InterPodAffinity"}]}}, "pluginConfig": configs}
    warnings = load({**document, "profiles": [profile]}, installed().catalogue(), "p").warnings
    told = [warning.partition(": ")[2] for warning in warnings]
    assert told == [
        "args of Coscheduling have no effect: the profile does not run it",
        "args of InterPodAffinity have no effect: the profile does not run it",
    ]


def test_a_section_without_effect_is_named() -> None:
    document = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config = {"name": "VolumeBinding", "args": {"shape": [{"utilization": 0, "score": 0}]}}
    (warning,) = load({**document, "profiles": [{"pluginConfig": [config]}]}, installed().catalogue(), "p").warnings
    assert "shape of VolumeBindingArgs has no effect" in warning
