"""What the user of the live view looks at: the pane, the selected row, the filter, the opened job. No terminal, no clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

PANES: Final = ("Jobs", "Queues", "Nodes", "Events")
KEYS: Final = (
    "up, down, k, j     move; PgUp and PgDn by a page; Home, End, g, G to the ends",
    "Enter, right       open the selected job: its pods and its whole reason",
    "Esc, left          go back; in a list, clear the filter",
    "/                  filter the list by words",
    "Tab                the next list: jobs, queues, nodes, events",
    "?                  these keys",
    "q                  go back; in a list, stop the cluster, as Ctrl-C does",
)
"""What `?` shows."""
_MOVES: Final = {"up": -1, "k": -1, "down": 1, "j": 1}


@dataclass
class ViewState:
    pane: str = "Jobs"
    selected: str = ""
    """The key of the selected row. It stays selected when rows come and go."""
    number: int = 0
    """Its place in the list, for when it is gone."""
    filter: str = ""
    typing: bool = False
    """Keys are letters of the filter."""
    opened: str = ""
    """The key of the job that is shown alone; empty: the list is."""
    scroll: int = 0
    """The first line of the opened job that is shown."""
    helps: bool = False
    """The keys are shown; any key hides them."""
    quits: bool = False
    """The user wants the cluster stopped."""

    def press(self, key: str, rows: Sequence[str], page: int) -> None:
        """`rows`: keys of the rows that the list has now. `page`: how many lines it has on the screen."""
        if self.typing:
            self._type(key)
        elif self.helps or key == "?":
            self.helps = not self.helps
        elif self.opened:
            self._read(key, page)
        else:
            self._move(key, rows, page)

    def place(self, rows: Sequence[str]) -> int:
        """The place of the selected row in this list. If it is gone, the row that has its place now is selected."""
        if self.selected in rows:
            self.number = rows.index(self.selected)
        else:
            self.number = max(0, min(self.number, len(rows) - 1))
            self.selected = rows[self.number] if rows else ""
        return self.number

    def passes(self, text: str) -> bool:
        """Whether a row with this text is in the list. Every word of the filter must be in it."""
        return all(word in text.lower() for word in self.filter.lower().split())

    def _type(self, key: str) -> None:
        match key:
            case "enter":
                self.typing = False
            case "escape":
                self.typing, self.filter = False, ""
            case "backspace":
                self.filter = self.filter[:-1]
            case _ if len(key) == 1:
                self.filter += key

    def _read(self, key: str, page: int) -> None:
        match key:
            case "escape" | "q" | "left" | "backspace":
                self.opened, self.scroll = "", 0
            case "pageup" | "pagedown":
                self.scroll = max(0, self.scroll + (page if key == "pagedown" else -page))
            case "home" | "g":
                self.scroll = 0
            case _ if key in _MOVES:
                self.scroll = max(0, self.scroll + _MOVES[key])

    def _move(self, key: str, rows: Sequence[str], page: int) -> None:
        number = self.place(rows)
        match key:
            case "tab":
                self.pane = PANES[(PANES.index(self.pane) + 1) % len(PANES)]
                self.selected, self.number = "", 0
                return
            case "/":
                self.typing = True
                return
            case "q":
                self.quits = True
                return
            case "escape":
                self.filter = ""
                return
            case "enter" | "right":
                if self.pane == "Jobs" and rows:
                    self.opened = self.selected
                return
            case "pageup" | "pagedown":
                number += page if key == "pagedown" else -page
            case "home" | "g":
                number = 0
            case "end" | "G":
                number = len(rows) - 1
            case _ if key in _MOVES:
                number += _MOVES[key]
            case _:
                return
        self.number = max(0, min(number, len(rows) - 1))
        self.selected = rows[self.number] if rows else ""


def window(heights: Sequence[int], selected: int, room: int) -> tuple[int, int]:
    """The first and the last row (exclusive) of a screen with `room` lines on which the selected row is visible.

    >>> window([1] * 100, 0, 10), window([1] * 100, 50, 10), window([2, 2, 2], 2, 4), window([], 0, 4)
    ((0, 10), (45, 55), (1, 3), (0, 0))
    """
    if not heights:
        return 0, 0
    first = last = selected
    used = heights[selected]
    last += 1
    while True:
        before = used
        if first > 0 and used + heights[first - 1] <= room:
            first -= 1
            used += heights[first]
        if last < len(heights) and used + heights[last] <= room:
            used += heights[last]
            last += 1
        if used == before:
            return first, last
