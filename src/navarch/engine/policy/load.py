"""From a document to a Policy, or to every mistake in it at once."""

from __future__ import annotations

from collections.abc import Mapping

from navarch.engine.policy import evictions
from navarch.engine.policy import flat_map as flat
from navarch.engine.policy import search_budgets as budgets
from navarch.engine.policy import sections as params
from navarch.engine.policy.catalogue import Catalogue
from navarch.engine.policy.checks import check_together
from navarch.engine.policy.compat import COMPAT, PEERS
from navarch.engine.policy.file_form import Choice, choose
from navarch.engine.policy.findings import Findings
from navarch.engine.policy.kai_shard import is_shard, translated
from navarch.engine.policy.kube_scheduler.configuration import read_policy as read_kube_scheduler
from navarch.engine.policy.presets import KAI_BUILT_IN, PRESETS
from navarch.engine.policy.schema import check
from navarch.engine.policy.source import Source, read
from navarch.engine.policy.tiers import TiersReader
from navarch.engine.policy.values import Mistake, Policy, PolicyError


def load(document: str | Mapping[str, object], catalogue: Catalogue, name: str = "policy", *, shard: str = "") -> Policy:
    """The policy of a file's text or of its decoded mapping; `name` stands before each mistake. `shard`: which of several
    SchedulingShards of KAI is meant.

    Raises PolicyError with all mistakes. Warnings do not refuse a policy; it carries them.
    """
    source = read(document, name)
    if is_shard(source.value):
        source = translated(source, shard)
    elif shard:
        raise PolicyError(name, [Mistake(f"found no SchedulingShard of KAI, expected {shard}")])
    choice = choose(source)
    reading = PEERS[choice.dialect].reading if choice.dialect in PEERS else "strict"
    findings = Findings(source, choice.tolerant, reading)
    for path, message in source.remarks:
        findings.warn(path, message)
    for path in source.duplicates:
        findings.object_to(path, "this key is given twice", "the last one holds")
    if choice.form == "kube-scheduler":
        policy = read_kube_scheduler(findings, choice, catalogue)
    else:
        policy = _read(findings, choice, catalogue, source)
    if findings.mistakes:
        raise PolicyError(name, sorted(findings.mistakes, key=lambda m: m.line or 0))
    return policy


def preset(name: str, catalogue: Catalogue) -> Policy:
    """A policy by its name: see `PRESETS`."""
    return load(PRESETS[name], catalogue, name)


def _read(findings: Findings, choice: Choice, catalogue: Catalogue, source: Source) -> Policy:
    document: Mapping[str, object] = source.value
    reader = TiersReader(findings, choice, catalogue)
    if choice.dialect == "kai" and choice.form == "tiers":
        document = _with_defaults(findings, document)
    actions = reader.actions(document.get("actions"))
    if choice.form == "flat":
        tiers = flat.read_plugins(findings, choice, catalogue, document)
        document = {k: v for k, v in document.items() if k in ("schedulerParams", evictions.KEY, evictions.REPEATED)}
    else:
        document = reader.known_keys(document)
        tiers = reader.tiers(document.get("tiers"))
    if not any(tiers):
        findings.warn(("tiers",), "no plugin is named: nothing but the actions' own rules holds")
    configurations = reader.configurations(document.get("configurations"), actions)
    metrics = check(findings, ("metrics",), document.get("metrics"), params.METRICS, "metrics")
    check_together(findings, choice, tiers, actions, catalogue, metrics)
    path = ("scenarioSearchBudgets",)
    search_budgets = check(findings, path, document.get(path[0]), budgets.FIELDS, path[0])
    budgets.check_budgets(findings, search_budgets)
    how = evictions.read_evictions(findings, document, choice.compat)
    return Policy(
        actions=actions,
        tiers=tiers,
        configurations=configurations,
        compat=choice.compat,
        dialect=choice.dialect,
        semantics=COMPAT[choice.compat],
        params=params.read_params(findings, document.get("schedulerParams")),
        metrics=metrics,
        usage=reader.usage(document.get("usageDBConfig")),
        queue_depth=reader.queue_depth(document.get("queueDepthPerAction")),
        search_budgets=search_budgets,
        evictions=how,
        repeated_evictions=evictions.read_repeated(findings, document),
        warnings=findings.warnings(),
        source=source.name,
        chosen=choice.why,
        document=source.value,
    )


def _with_defaults(findings: Findings, document: Mapping[str, object]) -> Mapping[str, object]:
    """KAI fills what a file leaves out from its built-in configuration, part by part."""
    missing = [key for key in ("actions", "tiers") if not document.get(key)]
    for key in missing:
        findings.warn((), f"the file has no {key}: KAI's built-in ones are used")
    return {**document, **{key: KAI_BUILT_IN[key] for key in missing}}
