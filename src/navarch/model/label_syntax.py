"""What Kubernetes accepts as a label key, a label value and a requirement, and what it says when it does not.

A term that does not parse matches no node, and in preferred terms it fails the whole attempt with the
texts below; users meet them in events, so they are the API's own. Each check returns the complaints found,
none meaning valid.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_NAME})?"
_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_NAME_PATTERN: Final = re.compile(_NAME, re.ASCII)
_VALUE_PATTERN: Final = re.compile(_VALUE, re.ASCII)
_SUBDOMAIN_PATTERN: Final = re.compile(_SUBDOMAIN, re.ASCII)
_INTEGER_PATTERN: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_CHARACTERS = "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
_EXAMPLES = f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
_VALUE_COMPLAINT: Final = (
    f"a valid label must be an empty string or {_CHARACTERS} "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_VALUE}')"
)
_QUALIFIED_COMPLAINT: Final = (
    f"a qualified name must {_CHARACTERS} {_EXAMPLES} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
_SUBDOMAIN_COMPLAINT: Final = (
    "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
    "must start and end with an alphanumeric character (e.g. 'example.com', "
    f"regex used for validation is '{_SUBDOMAIN}')"
)
_LABEL_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1
_INT32_MAX = (1 << 31) - 1


@lru_cache(maxsize=16384)
def parse_int64(text: str) -> int | None:
    """The integer a label value spells, or None: sign and decimal digits only, within int64.

    Leading zeros are dropped first: Python refuses to convert thousands of digits, and a pod may write as many.
    """
    if _INTEGER_PATTERN.fullmatch(text) is None:
        return None
    digits = text.lstrip("+-").lstrip("0")
    if len(digits) > 19:
        return None
    number = int(digits or "0") * (-1 if text[0] == "-" else 1)
    return number if _INT64_MIN <= number <= _INT64_MAX else None


def parse_count(text: str) -> int | None:
    """How many: decimal digits only, within int32; None for any other text.

    >>> parse_count("12"), parse_count("-1"), parse_count("9" * 5000)
    (12, None, None)
    """
    number = parse_int64(text) if text[:1].isdecimal() else None
    return number if number is not None and number <= _INT32_MAX else None


@lru_cache(maxsize=16384)
def key_complaints(key: str) -> tuple[str, ...]:
    """What is wrong with a label key, which is also how resource names are spelt."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return (_QUALIFIED_COMPLAINT,)
    found = []
    if slash and not prefix:
        found.append("prefix part must be non-empty")
    elif slash:
        if len(prefix.encode()) > 253:
            found.append("prefix part must be no more than 253 bytes")
        if _SUBDOMAIN_PATTERN.fullmatch(prefix) is None:
            found.append(_SUBDOMAIN_COMPLAINT)
    if not name:
        found.append("name part must be non-empty")
    elif len(name.encode()) > 63:
        found.append("name part must be no more than 63 bytes")
    if _NAME_PATTERN.fullmatch(name) is None:
        found.append(f"name part must {_CHARACTERS} {_EXAMPLES}")
    return tuple(found)


@lru_cache(maxsize=16384)
def value_complaints(value: str) -> tuple[str, ...]:
    """What is wrong with a label value."""
    found = []
    if len(value.encode()) > 63:
        found.append("must be no more than 63 bytes")
    if _VALUE_PATTERN.fullmatch(value) is None:
        found.append(_VALUE_COMPLAINT)
    return tuple(found)


def _invalid(path: str, found: str | Sequence[str], complaint: str) -> str:
    shown = json.dumps(found if isinstance(found, str) else list(found), ensure_ascii=False, separators=(",", ":"))
    return f"{path.lstrip('.')}: Invalid value: {shown}: {complaint}"


def _unsupported(path: str, operator: str, allowed: Sequence[str]) -> str:
    shown = ", ".join(json.dumps(name) for name in sorted(allowed))
    return f"{path.lstrip('.')}: Unsupported value: {json.dumps(operator)}: supported values: {shown}"


def requirement_errors(key: str, operator: str, values: Sequence[str], path: str = "") -> list[str]:
    """Errors of one requirement on labels; ``path`` says where it stands."""
    if operator not in _LABEL_OPERATORS:
        return [_unsupported(f"{path}.operator", operator, _LABEL_OPERATORS)]
    errors = []
    where = f"{path}.values"
    if complaints := key_complaints(key):
        errors.append(_invalid(f"{path}.key", key, "; ".join(complaints)))
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(_invalid(where, values, "for 'in', 'notin' operators, values set can't be empty"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            errors.append(_invalid(where, values, "values set must be empty for exists and does not exist"))
    else:
        if len(values) != 1:
            errors.append(_invalid(where, values, "for 'Gt', 'Lt' operators, exactly one value is required"))
        errors.extend(
            _invalid(f"{where}[{i}]", value, "for 'Gt', 'Lt' operators, the value must be an integer")
            for i, value in enumerate(values)
            if parse_int64(value) is None
        )
    for i, value in enumerate(values):
        if complaints := value_complaints(value):
            errors.append(_invalid(f"{where}[{i}][{key}]", value, "; ".join(complaints)))
    return errors


def field_requirement_errors(operator: str, values: Sequence[str], path: str = "") -> list[str]:
    """Errors of one requirement on a node's fields: In and NotIn only, one value each."""
    if operator not in ("In", "NotIn"):
        return [_unsupported(f"{path}.operator", operator, ("In", "NotIn"))]
    if len(values) != 1:
        return [_invalid(f"{path}.values", values, "must have one element")]
    return []


def aggregate(errors: Sequence[str]) -> str:
    """One text for several errors: alone as it is, together in brackets, repeated ones once."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
