"""The other forms: the flat map of early kube-batch, KAI's files, and which dialect a file is taken for."""

from __future__ import annotations

from textwrap import dedent

import pytest
from tests.worlds.policy_catalogue import CATALOGUE

from navarch.engine.policy import Policy, PolicyError, load

FLAT = """\
actions: "reclaim, allocate, preempt"
plugins: "gang, priority, drf, predicates, proportion"
plugin.gang.jobready: "true"
plugin.gang.joborder: "true"
plugin.gang.preemptable: "true"
plugin.priority.joborder: "true"
plugin.priority.taskorder: "true"
plugin.drf.preemptable: "true"
plugin.drf.joborder: "false"
"""


def read(text: str) -> Policy:
    return load(dedent(text), CATALOGUE, "test.yaml")


def enabled(policy: Policy, point: str) -> list[str]:
    return [option.name for option in policy.plugins if option.is_enabled(point)]


def test_a_point_that_the_flat_map_does_not_name_is_off() -> None:
    policy = read(FLAT)
    assert policy.actions == ("reclaim", "allocate", "preempt")
    assert enabled(policy, "job_order") == ["gang", "priority", "predicates", "proportion"]
    assert enabled(policy, "job_ready") == ["gang", "predicates", "proportion"]
    assert enabled(policy, "task_order") == ["priority", "predicates", "proportion"]
    assert enabled(policy, "preemptable") == ["gang", "drf", "predicates", "proportion"]
    assert enabled(policy, "reclaimable") == ["predicates", "proportion"]


def test_points_split_off_later_follow_the_one_they_came_from() -> None:
    assert "gang" in enabled(read(FLAT), "job_pipelined") and "gang" in enabled(read(FLAT), "job_starving")
    assert "gang" not in enabled(read(FLAT + 'plugin.gang.jobpipelined: "false"\n'), "job_pipelined")


def test_mistakes_in_the_flat_map() -> None:
    with pytest.raises(PolicyError) as raised:
        read(
            FLAT.replace("drf,", "dfr,")
            + 'plugin.gang.jobraedy: "true"\nplugin.predicates.predicate: "false"\nplugin.gang.joborder2: 7\n'
            + "plugin.priority.queueorder: maybe\nschedulerparams: {}\n"
        )
    assert [str(mistake) for mistake in raised.value.mistakes] == [
        "line 2, plugins: unknown plugin 'dfr' (did you mean 'drf'?)",
        "line 10, plugin.gang.jobraedy: unknown extension point 'jobraedy' (did you mean 'jobready'?)",
        "line 11, plugin.predicates.predicate: predicates has no switches in this form",
        "line 12, plugin.gang.joborder2: unknown extension point 'joborder2' (did you mean 'joborder'?)",
        'line 13, plugin.priority.queueorder: found \'maybe\', expected "true" or "false"',
        "line 14, schedulerparams: unknown key 'schedulerparams' (did you mean 'schedulerParams'?)",
    ]


def test_the_flat_map_under_kube_batch() -> None:
    policy = read("compat: kube-batch\n" + FLAT + 'plugin.predicates.predicate: "false"\n')
    assert policy.compat == "kube-batch" and policy.semantics.starving_is_pending
    assert policy.warnings == ("line 11, plugin.predicates.predicate: predicates has no switches in this form; it always runs",)


KAI = """\
actions: "allocate, reclaim"
tiers:
- plugins:
  - name: proportion
    disableQueueOrder: true
    arguments: {kValue: "0.5"}
  - name: sg-nodelocalgreedy
- plugins:
  - name: nodeplacement
    arguments: {cpu: spread}
queueDepthPerAction: {reclaim: 10}
usageDBConfig:
  clientType: prometheus
  connectionString: http://prometheus:9090
  usageParams: {windowSize: 24h, windowType: tumbling}
scenarioSearchBudgets:
  maxActionSearchDuration: {default: 5m0s, reclaim: 1m}
  maxJobSearchDuration: 4m
schedulerParams:
  maxNumberConsolidationPreemptees: -1
  default-staleness-grace-period: 0s
"""


def test_a_file_that_only_kai_can_mean_is_kais() -> None:
    policy = read(KAI)
    assert (policy.compat, policy.dialect) == ("kai", "kai")
    assert policy.chosen == "it names no compat, and only KAI has the plugin 'sg-nodelocalgreedy'"
    assert [[o.name for o in tier] for tier in policy.tiers] == [["proportion", "sg-nodelocalgreedy", "nodeplacement"]]
    assert policy.plugins[0].arguments == {"kValue": 0.5}
    assert policy.plugins[0].is_enabled("queue_order")
    assert any("never asks it" in warning for warning in policy.warnings)
    assert policy.queue_depth == {"reclaim": 10}
    assert policy.usage["usageParams"] == {"windowSize": 86400.0, "windowType": "tumbling"}
    assert policy.search_budgets["maxActionSearchDuration"] == {"default": 300.0, "reclaim": 60.0}
    assert policy.params == {"maxNumberConsolidationPreemptees": -1, "globalDefaultStalenessGracePeriod": 0.0}
    assert policy.param("useSchedulingSignatures") is True


def test_strict_keeps_kais_names_and_minds_its_switches() -> None:
    policy = read("compat: strict\n" + KAI)
    assert (policy.compat, policy.dialect) == ("strict", "kai")
    assert policy.semantics.victims_are_minimal
    assert not policy.plugins[0].is_enabled("queue_order")


def test_kai_fills_in_what_its_file_leaves_out() -> None:
    policy = read("compat: kai\nqueueDepthPerAction: {allocate: 5}\n")
    assert policy.actions[-1] == "stalegangeviction" and len(policy.plugins) == 20
    assert len(policy.warnings) == 2


def test_kai_without_scenario_generators_is_told() -> None:
    policy = read('compat: kai\nactions: "allocate, reclaim"\ntiers: [{plugins: [{name: predicates}]}]\n')
    assert "no sg-* plugin is named, so reclaim will never find victims" in policy.warnings[0]


def test_usage_from_one_place_only() -> None:
    with pytest.raises(PolicyError, match="expected one of them"):
        read("compat: kai\nusageDBConfig: {connectionString: a, connectionStringEnvVar: B}\n")


def test_keys_of_kai_in_a_volcano_file() -> None:
    with pytest.raises(PolicyError, match="unknown action 'alocate'"):
        read("actions: allocate\ntiers: [{plugins: [{name: gang}]}]\nqueueDepthPerAction: {alocate: 5}\n")
    policy = read("compat: volcano\nactions: allocate\ntiers: [{plugins: [{name: gang}]}]\nqueueDepthPerAction: {a: 5}\n")
    assert policy.warnings == ("line 4, queueDepthPerAction: unknown key 'queueDepthPerAction'; ignored",)
    assert policy.queue_depth == {}


def config_map(key: str, file: str, more: str = "") -> str:
    text = "".join(f"    {line}\n" for line in file.splitlines())
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: volcano-scheduler-configmap}}\ndata:\n  {key}: |\n{text}{more}"


VOLCANO_FILE = "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n    arguments: {no.such.argument: 1}"


@pytest.mark.parametrize("key", ["volcano-scheduler.conf", "volcano-scheduler-ci.conf"])
def test_the_config_map_of_an_installation_of_volcano_is_volcanos(key: str) -> None:
    policy = read(config_map(key, VOLCANO_FILE, '  other.conf: "x"\n'))
    assert (policy.compat, policy.evictions) == ("volcano", "delete")
    assert policy.chosen == f"it names no compat, and it is {key} of a ConfigMap"
    assert load(policy.document, CATALOGUE).compat == "volcano"
    assert any("no.such.argument" in warning for warning in policy.warnings)


def test_another_config_map_is_strict_and_so_is_one_that_says_so() -> None:
    plain = VOLCANO_FILE.replace("no.such.argument: 1", "")
    assert read(config_map("scheduler.conf", plain)).compat == "strict"
    assert read(config_map("volcano-scheduler.conf", f"compat: strict\n{plain}")).compat == "strict"


@pytest.mark.parametrize(("text", "named"), [("actions: allocate\ntiers: []\n", "volcano"), (FLAT, "kube-batch")])
def test_a_strict_file_is_told_which_compat_follows_its_system(text: str, named: str) -> None:
    policy = read(text)
    assert policy.compat == "strict" and f"`compat: {named}`" in policy.chosen
