"""The catalogue of actions and plugins that a policy file can name, with their arguments and extension points.

The registry fills one from the classes that are installed; the loader only ever sees the catalogue. Where two systems
have different plugins under one name, the second is entered as `DIALECT:NAME` (`kai:proportion`) and found when a file
of that dialect says NAME.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from navarch.engine.arguments import Argument


class Entry(Struct, frozen=True):
    """An action or a plugin. `points` are the extension points that a plugin implements; unknown when None."""

    arguments: tuple[Argument, ...] = ()
    points: tuple[str, ...] | None = None
    doc: str = ""
    made_from: type | None = None
    """The class, for readers of its docstring."""


class Catalogue(Struct, frozen=True):
    actions: Mapping[str, Entry] = field(default_factory=dict)
    plugins: Mapping[str, Entry] = field(default_factory=dict)

    def action(self, name: str, dialect: str = "navarch") -> Entry | None:
        return _find(self.actions, name, dialect)

    def plugin(self, name: str, dialect: str = "navarch") -> Entry | None:
        """
        >>> both = Catalogue(plugins={"proportion": Entry(), "kai:proportion": Entry(doc="fair share")})
        >>> both.plugin("proportion", "kai").doc
        'fair share'
        """
        return _find(self.plugins, name, dialect)


def key_of(entries: Mapping[str, object], name: str, dialect: str) -> str | None:
    """The key under which a name of a dialect is entered, or None."""
    own = f"{dialect}:{name}"
    return own if own in entries else name if name in entries else None


def _find(entries: Mapping[str, Entry], name: str, dialect: str) -> Entry | None:
    key = key_of(entries, name, dialect)
    return None if key is None else entries[key]
