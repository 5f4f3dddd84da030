"""The oldest form: one flat map of strings, as the first releases of kube-batch read it.

`plugins` lists names in the order of calls; `plugin.NAME.POINT: "true"` switches a point on, and a point that is not named
is off. `predicates` and `proportion` have no switches there and always run. Points that later releases split off from one
of these follow the point they came from, unless they are named themselves: a file of that age cannot have meant a gang
that is asked whether it is ready but not whether it is pipelined.
"""

from __future__ import annotations

from collections.abc import Mapping

from navarch.engine.policy.catalogue import Catalogue
from navarch.engine.policy.file_form import Choice
from navarch.engine.policy.findings import Findings
from navarch.engine.policy.point_switches import DEFAULTS
from navarch.engine.policy.tiers import TiersReader
from navarch.engine.policy.values import PluginOption

ALWAYS_RUN = frozenset({"predicates", "proportion"})
POINTS: Mapping[str, str] = {name.replace("_", ""): name for name in DEFAULTS}
SPLIT_OFF: Mapping[str, str] = {
    "job_pipelined": "job_ready",
    "job_starving": "job_ready",
    "sub_job_ready": "job_ready",
    "sub_job_pipelined": "job_ready",
    "sub_job_order": "job_order",
}
_KEYS = ("actions", "plugins", "compat", "schedulerParams", "evictions", "repeatedEvictions")


def read_plugins(
    findings: Findings, choice: Choice, catalogue: Catalogue, document: Mapping[str, object]
) -> tuple[tuple[PluginOption, ...], ...]:
    """One tier with every plugin of the map, in the order of `plugins`."""
    names = [part.strip() for part in str(document.get("plugins") or "").split(",") if part.strip()]
    switches = _switches(findings, document, names)
    tier = {"plugins": [{"name": name} for name in names]}
    inner = TiersReader(Findings(findings.source, findings.tolerant, findings.reading), choice, catalogue)
    options = inner.tiers([tier])
    for found, kept in ((inner.findings.mistakes, findings.mistake), (inner.findings.warned, findings.warn)):
        for mistake in found:
            kept(("plugins",), mistake.message)
    line = findings.source.line(("plugins",))
    return tuple(tuple(PluginOption(option.name, _enabled(option.name, switches), {}, line) for option in tier) for tier in options)


def _switches(findings: Findings, document: Mapping[str, object], names: list[str]) -> dict[tuple[str, str], bool]:
    switches: dict[tuple[str, str], bool] = {}
    for key, value in document.items():
        if key in _KEYS:
            continue
        prefix, _, rest = key.partition(".")
        name, _, point = rest.rpartition(".")
        path = (key,)
        if prefix != "plugin" or not name:
            findings.unknown(path, "key", key, _KEYS)
        elif point not in POINTS:
            findings.unknown(path, "extension point", point, POINTS)
        elif value not in (True, False, "true", "false"):
            findings.object_to(path, f'found {value!r}, expected "true" or "false"', "it stays off")
        elif name in ALWAYS_RUN:
            findings.object_to(path, f"{name} has no switches in this form", "it always runs")
        else:
            if name not in names:
                findings.warn(path, f"{name!r} is switched but is not among the plugins")
            switches[name, POINTS[point]] = value in (True, "true")
    return switches


def _enabled(name: str, switches: Mapping[tuple[str, str], bool]) -> dict[str, bool]:
    if name in ALWAYS_RUN:
        return dict(DEFAULTS)
    return {p: switches.get((name, p), switches.get((name, SPLIT_OFF.get(p, p)), False)) for p in DEFAULTS}
