"""A subset of KWOK's Stages, read from their objects: which pods they concern, how long they wait, what they do then.

What is not understood is an error that names the field, so that a Stage is either followed or refused, never half followed.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from navarch.embedded.kubelets.stage_paths import Find, PathError, parse_path
from navarch.embedded.timers import parse_duration, seconds_of
from navarch.object_types import Manifest

Facts = Mapping[str, str]
"""What template functions answer: Now, NodeIP, PodIP, NodeName."""
FUNCTIONS = ("Now", "NodeIP", "PodIP", "NodeName")
_PLACE = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_SPEC_FIELDS = frozenset({"resourceRef", "selector", "weight", "delay", "next"})
_NEXT_FIELDS = frozenset({"event", "finalizers", "delete", "patches", "statusTemplate", "statusSubresource", "statusPatchAs"})


class StageError(ValueError):
    """A Stage uses something that is not supported; `field` says where."""

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        self.message = message
        super().__init__(f"{field}: {message}")


@dataclass(frozen=True)
class Expression:
    find: Find
    operator: str
    values: frozenset[str]

    def holds(self, obj: Manifest) -> bool:
        found = self.find(obj)
        match self.operator:
            case "In":
                return any(str(value) in self.values for value in found)
            case "NotIn":
                return not any(str(value) in self.values for value in found)
            case "Exists":
                return bool(found)
            case _:
                return not found


@dataclass(frozen=True)
class Stage:
    name: str
    kind: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    expressions: tuple[Expression, ...]
    weight: int
    duration: float
    duration_from: Find | None
    jitter: float | None
    event: Manifest | None
    finalizers: Manifest
    delete: bool
    templates: tuple[tuple[str, str], ...]
    """(where: "" for the whole object or "status", template) in the order in which they are merged."""

    def matches(self, obj: Manifest) -> bool:
        metadata = obj["metadata"]
        return (
            self.labels.items() <= (metadata.get("labels") or {}).items()
            and self.annotations.items() <= (metadata.get("annotations") or {}).items()
            and all(expression.holds(obj) for expression in self.expressions)
        )

    def delay(self, obj: Manifest, now: float, chance: random.Random) -> float:
        """Seconds to wait."""
        duration = self.duration
        found = self.duration_from(obj) if self.duration_from is not None else []
        if found:
            duration = _seconds(str(found[0]), now, duration)
        if self.jitter is not None and self.jitter > duration:
            return chance.uniform(duration, self.jitter)
        return duration

    def patch(self, obj: Manifest, facts: Facts) -> Manifest:
        """What is merged into the object."""
        patch: Manifest = {}
        for where, template in self.templates:
            rendered = yaml.safe_load(render(template, obj, facts)) or {}
            patch = {**patch, where: {**patch.get(where, {}), **rendered}} if where else {**patch, **rendered}
        return patch


def read_stage(obj: Manifest) -> Stage:
    """Raises StageError for what is not understood."""
    spec = obj.get("spec") or {}
    _only(spec, _SPEC_FIELDS, "spec")
    reference = spec.get("resourceRef") or {}
    if reference.get("kind") != "Pod" or reference.get("apiGroup", "v1") not in ("v1", ""):
        raise StageError("spec.resourceRef", f"found {reference}, expected kind Pod of v1")
    selector = spec.get("selector") or {}
    _only(selector, frozenset({"matchLabels", "matchAnnotations", "matchExpressions"}), "spec.selector")
    delay = spec.get("delay") or {}
    _only(
        delay,
        frozenset({"durationMilliseconds", "durationFrom", "jitterDurationMilliseconds"}),
        "spec.delay",
    )
    source = (delay.get("durationFrom") or {}).get("expressionFrom") or (delay.get("durationFrom") or {}).get("expression")
    jitter = delay.get("jitterDurationMilliseconds")
    following = spec.get("next") or {}
    _only(following, _NEXT_FIELDS, "spec.next")
    return Stage(
        name=obj["metadata"]["name"],
        kind="Pod",
        labels=selector.get("matchLabels") or {},
        annotations=selector.get("matchAnnotations") or {},
        expressions=tuple(
            _expression(each, f"spec.selector.matchExpressions[{i}]") for i, each in enumerate(selector.get("matchExpressions") or ())
        ),
        weight=int(spec.get("weight") or 0),
        duration=int(delay.get("durationMilliseconds") or 0) / 1000,
        duration_from=_path(source, "spec.delay.durationFrom.expressionFrom") if source else None,
        jitter=None if jitter is None else int(jitter) / 1000,
        event=following.get("event"),
        finalizers=following.get("finalizers") or {},
        delete=bool(following.get("delete")),
        templates=tuple(_templates(following)),
    )


def _templates(following: Manifest) -> list[tuple[str, str]]:
    found = []
    if following.get("statusTemplate"):
        found.append(("status", str(following["statusTemplate"]), "spec.next.statusTemplate"))
    for i, patch in enumerate(following.get("patches") or ()):
        where = f"spec.next.patches[{i}]"
        if patch.get("type", "merge") not in ("merge", "strategic"):
            raise StageError(f"{where}.type", f"found {patch['type']!r}, expected merge or strategic")
        found.append((str(patch.get("root") or ""), str(patch.get("template") or ""), f"{where}.template"))
    for _, template, field in found:
        for place in _PLACE.findall(template):
            _value(place, field)
    return [(where, template) for where, template, _ in found]


def _only(part: Manifest, known: frozenset[str], where: str) -> None:
    for key in sorted(part):
        if key not in known:
            raise StageError(f"{where}.{key}", f"is not followed here; expected only {', '.join(sorted(known))}")


def _expression(each: Manifest, where: str) -> Expression:
    operator = each.get("operator", "")
    if operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
        raise StageError(f"{where}.operator", f"found {operator!r}, expected In, NotIn, Exists or DoesNotExist")
    return Expression(_path(each.get("key"), f"{where}.key"), operator, frozenset(str(v) for v in each.get("values") or ()))


def _path(text: Any, where: str) -> Find:
    try:
        return parse_path(str(text or ""))
    except PathError as error:
        raise StageError(where, str(error)) from None


def _value(place: str, field: str) -> Callable[[Manifest, Facts], Any]:
    """The text between two pairs of braces: a function or a path, quoted if requested."""
    word, _, filter_ = (part.strip() for part in place.partition("|"))
    quoted = filter_ == "Quote"
    if word.startswith("Quote "):
        word, quoted = word.removeprefix("Quote ").strip(), True
    if filter_ not in ("", "Quote") or not (word in FUNCTIONS or word.startswith(".")):
        expected = f"a path such as .metadata.name, or one of {', '.join(FUNCTIONS)}"
        raise StageError(field, f"found {{{{ {place} }}}}, expected {expected}")
    find = _path(word, field) if word.startswith(".") else None

    def value(obj: Manifest, facts: Facts) -> Any:
        found: Any = facts[word] if find is None else next(iter(find(obj)), "")
        return f'"{found}"' if quoted else found

    return value


def render(template: str, obj: Manifest, facts: Facts) -> str:
    """A template with its places filled in.

    >>> render("startTime: {{ Now | Quote }}", {}, {"Now": "12:00"})
    'startTime: "12:00"'
    """
    return _PLACE.sub(lambda match: str(_value(match.group(1), "template")(obj, facts)), template)


def _seconds(text: str, now: float, otherwise: float) -> float:
    """A duration, or the time until a moment."""
    try:
        return parse_duration(text)
    except ValueError:
        pass
    try:
        return max(0.0, seconds_of(text) - now)
    except ValueError:
        return otherwise
