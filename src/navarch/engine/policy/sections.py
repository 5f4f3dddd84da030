"""Sections of a policy file besides actions and plugins: parameters, usage, metrics."""

from __future__ import annotations

from navarch.engine.arguments import Argument
from navarch.engine.policy.findings import Findings
from navarch.engine.policy.scheduler_params import FLAGS, PARAMETERS
from navarch.engine.policy.schema import Fields, Nested


def read_params(findings: Findings, value: object) -> dict[str, object]:
    path = ("schedulerParams",)
    given = findings.mapping(path, value)
    renamed: dict[str, object] = {}
    for name, raw in given.items():
        own = FLAGS.get(name.removeprefix("--"), name)
        if own not in PARAMETERS:
            findings.unknown((*path, name), "scheduler parameter", name, [*PARAMETERS, *FLAGS])
        elif own in renamed:
            findings.mistake((*path, name), f"{own} is given twice")
        else:
            renamed.update(findings.arguments(path, {own: raw}, tuple(PARAMETERS.values()), "schedulerParams"))
    return renamed


USAGE: Fields = (
    Argument("clientType", "str", "", "where usage is kept", ("prometheus", "builtin", "fake", "fake-with-history")),
    Argument("connectionString", "str"),
    Argument("connectionStringEnvVar", "str"),
    Nested(
        "usageParams",
        (
            Argument("halfLifePeriod", "duration"),
            Argument("windowSize", "duration", 604800.0),
            Argument("windowType", "str", "sliding", "", ("sliding", "tumbling", "cron")),
            Argument("tumblingWindowStartTime", "any"),
            Argument("cronString", "str"),
            Argument("fetchInterval", "duration", 60.0),
            Argument("stalenessPeriod", "duration", 300.0),
            Argument("waitTimeout", "duration", 60.0),
            Nested("extraParams", (Argument("*", "any"),)),
        ),
    ),
)
_NO_METRICS = "no plugin that is installed reads the load of nodes from a metrics server"
METRICS: Fields = (
    Argument("type", "str", "", _NO_METRICS, ("prometheus", "prometheus_adaptor", "elasticsearch"), has_effect=False),
    Argument("*", "any", None, _NO_METRICS, has_effect=False),
)
