"""Keys of a terminal by name, read on the event loop: `up`, `enter`, `escape`, or the character itself.

The terminal is put into cbreak mode, so that a key arrives at once and Ctrl-C still stops the command. It is restored at the end.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from typing import Final

_SEQUENCES: Final = {
    "[A": "up", "OA": "up", "[B": "down", "OB": "down", "[C": "right", "OC": "right", "[D": "left", "OD": "left",
    "[5~": "pageup", "[6~": "pagedown", "[H": "home", "OH": "home", "[1~": "home", "[F": "end", "OF": "end", "[4~": "end", "[Z": "tab",
}  # fmt: skip
_SINGLE: Final = {"\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace", "\t": "tab"}


def keys_in(text: str) -> Iterator[str]:
    """The keys in what a terminal sent at once.

    >>> list(keys_in("j\\x1b[A/web\\r")), list(keys_in("\\x1b")), list(keys_in("\\x1b[200~"))
    (['j', 'up', '/', 'w', 'e', 'b', 'enter'], ['escape'], [])
    """
    at = 0
    while at < len(text):
        if text[at] != "\x1b":
            key = _SINGLE.get(text[at], text[at])
            at += 1
            if len(key) > 1 or key.isprintable():
                yield key
            continue
        end = at + 1
        if end < len(text) and text[end] in "[O":
            end += 1
            while end < len(text) and not text[end].isalpha() and text[end] != "~":
                end += 1
            end += 1
            if (name := _SEQUENCES.get(text[at + 1 : end])) is not None:
                yield name
        else:
            yield "escape"
        at = end


@contextlib.contextmanager
def reading_keys(press: Callable[[str], None]) -> Iterator[None]:
    """Call `press` with each key while the context lasts. Without a terminal on standard input nothing is read."""
    if not sys.stdin.isatty():
        yield
        return
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    loop = asyncio.get_running_loop()

    def ready() -> None:
        data = os.read(fd, 4096)
        if not data:  # the terminal is gone
            loop.remove_reader(fd)
        for key in keys_in(decoder.decode(data)):
            press(key)

    tty.setcbreak(fd)
    loop.add_reader(fd, ready)
    try:
        yield
    finally:
        loop.remove_reader(fd)
        termios.tcsetattr(fd, termios.TCSADRAIN, before)
