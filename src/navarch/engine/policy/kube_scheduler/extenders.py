"""`extenders` of a KubeSchedulerConfiguration, checked and made the plugin `extenders` of every profile."""

from __future__ import annotations

from collections.abc import Mapping

from navarch.engine.arguments import Argument
from navarch.engine.policy.findings import Findings
from navarch.engine.policy.schema import Fields, Nested, check

KEY = "extenders"
FIELDS: Fields = (
    Argument("urlPrefix", "str", "", "URL of the extender"),
    Argument("filterVerb", "str", "", "path below it that filters nodes"),
    Argument("prioritizeVerb", "str", "", "path that scores nodes"),
    Argument("preemptVerb", "str", "", "path that reviews victims"),
    Argument("bindVerb", "str", "", "path that binds a pod; only one extender may have it"),
    Argument("weight", "int", 1, "factor of its scores", minimum=0),
    Argument("enableHTTPS", "bool", False, "says that urlPrefix is https"),
    Argument("httpTimeout", "duration", 5.0, "how long an answer may take", minimum=0),
    Argument("nodeCacheCapable", "bool", False, "send names of nodes instead of objects"),
    Argument("ignorable", "bool", False, "go on without it where it fails"),
    Nested("managedResources", (Argument("name", "str"), Argument("ignoredByScheduler", "bool", False)), many=True),
    Nested(
        "tlsConfig",
        (
            Argument("insecure", "bool", False),
            Argument("serverName", "str"),
            Argument("certFile", "str"),
            Argument("keyFile", "str"),
            Argument("caFile", "str"),
            Argument("certData", "str"),
            Argument("keyData", "str"),
            Argument("caData", "str"),
        ),
    ),
)


def read_extenders(findings: Findings, value: object) -> list[dict[str, object]]:
    """What holds of each extender."""
    found: list[dict[str, object]] = []
    for index, raw in enumerate(findings.items((KEY,), value)):
        path = (KEY, index)
        given = check(findings, path, raw, FIELDS, "extender")
        url = str(given.get("urlPrefix", ""))
        if not url.startswith(("http://", "https://")):
            findings.mistake((*path, "urlPrefix"), f"found {url!r}, expected a URL that begins with http:// or https://")
        if given.get("prioritizeVerb") and given.get("weight", 1) == 0:
            findings.mistake((*path, "weight"), "found 0, expected a positive number: the extender has a prioritizeVerb")
        tls = given.get("tlsConfig")
        if given.get("enableHTTPS") and not tls:
            message = "kube-scheduler does not verify the certificate without tlsConfig; here the authorities of the system do"
            findings.warn((*path, "enableHTTPS"), message)
        found.append(given)
    binders = [index for index, each in enumerate(found) if each.get("bindVerb")]
    if len(binders) > 1:
        findings.mistake((KEY, binders[1], "bindVerb"), f"found {len(binders)} extenders that bind, expected at most one")
    return found


def ignored_resources(extenders: list[dict[str, object]]) -> list[str]:
    """Resources that only an extender counts."""
    managed = (each.get("managedResources") for each in extenders)
    entries = [entry for listed in managed if isinstance(listed, list) for entry in listed if isinstance(entry, Mapping)]
    return [str(entry["name"]) for entry in entries if entry.get("ignoredByScheduler") and entry.get("name")]
