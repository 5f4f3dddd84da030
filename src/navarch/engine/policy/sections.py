"""Sections of a policy file besides actions and plugins: parameters, usage, metrics."""

from __future__ import annotations

from navarch.engine.arguments import Argument
from navarch.engine.policy.findings import Findings
from navarch.engine.policy.scheduler_params import FLAGS, PARAMETERS, about_flag
from navarch.engine.policy.schema import Fields, Nested


def read_params(findings: Findings, value: object) -> dict[str, object]:
    path = ("schedulerParams",)
    given = findings.mapping(path, value)
    renamed: dict[str, object] = {}
    for name, raw in given.items():
        own = FLAGS.get(name.removeprefix("--"), name)
        if own not in PARAMETERS and (why := about_flag(name)):
            findings.warn((*path, name), f"{name} has no effect in a policy file: {why}")
        elif own not in PARAMETERS:
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
            Argument("waitTimeout", "duration", 60.0, "no cycle waits for usage", has_effect=False),
            Nested("extraParams", (Argument("*", "any"),)),
        ),
    ),
)
METRICS: Fields = (
    Argument("type", "str", "", "the server that measures the load of nodes", ("prometheus", "prometheus_adaptor", "elasticsearch")),
    Argument("address", "str", "", "its URL; prometheus_adaptor is asked through the API server"),
    Argument("interval", "duration", 30.0, "how often it is asked; a pod that runs for less counts as not measured yet", minimum=0),
    Argument("tls.insecureSkipVerify", "bool", False, "do not check the certificate of the server"),
    Argument("elasticsearch.index", "str", "metricbeat-*", "the index to search"),
    Argument("elasticsearch.hostnameFieldName", "str", "host.hostname", "the field with the name of the node"),
    Argument("elasticsearch.username", "str", "", "user at the server"),
    Argument("elasticsearch.password", "str", "", "password of that user"),
)
