"""Lines that repeat: a few are written, the others are counted."""

from __future__ import annotations

import io
import logging

from navarch.live.ops.log_lines import ALIKE_SECONDS, MOST_ALIKE, MOST_REMEMBERED, CollapsingHandler


class Log:
    def __init__(self) -> None:
        self.now, self.stream = 0.0, io.StringIO()
        target = logging.StreamHandler(self.stream)
        target.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
        self.handler = CollapsingHandler(target, lambda: self.now)

    def say(self, text: str, level: int = logging.WARNING) -> None:
        self.handler.emit(logging.LogRecord("n", level, "f", 1, "%s", (text,), None))

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()


def test_a_line_that_repeats_is_written_a_few_times_and_then_counted() -> None:
    log = Log()
    for _ in range(122_620):
        log.say("no descriptors left")
    log.say("another")
    assert log.lines == [*["WARNING no descriptors left"] * MOST_ALIKE, "WARNING another"]
    log.now = ALIKE_SECONDS
    log.say("no descriptors left")
    more = 122_620 - MOST_ALIKE
    assert log.lines[-2:] == [f"WARNING no descriptors left ({more} more times in 60 s)", "WARNING no descriptors left"]


def test_what_was_counted_is_said_at_the_end_and_lines_that_differ_all_appear() -> None:
    log = Log()
    for number in range(MOST_REMEMBERED * 2):
        log.say(f"line {number}")
    assert len(log.lines) == MOST_REMEMBERED * 2
    for _ in range(MOST_ALIKE + 1):
        log.say("again", logging.ERROR)
    log.handler.close()
    assert log.lines[-1] == "ERROR again (1 more times in 60 s)"
