"""When a pending job starts, or why that is not known.

On a large cluster the forecasts take as long as the search for answers. A command may run them in a process of its own, beside the
search. It is forked, so it has the model without reading it again. A library forks no process of its caller.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from time import perf_counter

from navarch.explanation.result import Eta, Explanation
from navarch.explanation.trials import Run
from navarch.job_history import JobRun
from navarch.model.timestamps import rfc3339
from navarch.simulator.start_times.deadlines import Deadlines
from navarch.simulator.start_times.estimate import NO_BASIS, Basis, StartTimes, may_know, start_times
from navarch.simulator.start_times.step_forecast import STEPS_FROM

OUT_OF_TIME = "the forecasts did not end in time: give them more time"


@dataclass(frozen=True, slots=True)
class StartTimeQuestion:
    """The start of one job of a cluster, and what is known of run times."""

    run: Run
    key: str
    history: Sequence[JobRun]
    deadlines: Deadlines
    runs: int
    seed: int = 0

    @property
    def may_know(self) -> bool:
        """Whether a basis could be known at all."""
        return may_know(self.run.cluster, self.history, self.deadlines)

    @property
    def is_long(self) -> bool:
        """Whether its forecasts take as long as a search does."""
        return self.may_know and len(self.run.cluster.jobs.rows.of) > STEPS_FROM

    def answer(self, seconds: float) -> StartTimes:
        run, rules = self.run, self.run.rules
        started = perf_counter()
        basis = Basis(run.cluster, run.now, self.history, self.deadlines) if self.may_know else None
        if basis is None or not basis.known:
            return StartTimes({}, {self.key: NO_BASIS})
        left = seconds - (perf_counter() - started)
        return start_times(
            run.cluster, rules.policy, rules.registry, run.now, [self.key], basis, runs=self.runs, seconds=left, seed=self.seed
        )


class ForkedAnswer:
    """Answers the question in a process of its own, which ends after `seconds`."""

    def __init__(self, question: StartTimeQuestion, seconds: float) -> None:
        self._key, self._until = question.key, perf_counter() + seconds
        context = multiprocessing.get_context("fork")
        self._answers, sender = context.Pipe(duplex=False)
        self._process = context.Process(target=_answer, args=(sender, question, seconds), daemon=True)
        self._process.start()
        sender.close()

    @staticmethod
    def is_possible() -> bool:
        return sys.platform == "linux" and (os.cpu_count() or 1) > 1

    def answer(self) -> StartTimes:
        """Waits until the time is over, and a second for the last forecast."""
        found = StartTimes({}, {self._key: OUT_OF_TIME})
        try:
            if self._answers.poll(max(self._until - perf_counter(), 0.0) + 1.0):
                found = self._answers.recv()
        except EOFError:
            pass  # the process ended without an answer
        self.stop()
        return found

    @property
    def runs(self) -> bool:
        return self._process.is_alive()

    def stop(self) -> None:
        self._process.terminate()
        self._process.join()
        self._answers.close()


def _answer(sender: Connection, question: StartTimeQuestion, seconds: float) -> None:
    sender.send(question.answer(seconds))


def tell_start(found: Explanation, question: StartTimeQuestion, seconds: float, beside: ForkedAnswer | None = None) -> None:
    """Write the start time, or why it is not known, into the explanation. `beside`: where it is being estimated."""
    known_without = _known_without(found, question.run.now)
    if known_without:
        if beside is not None:
            beside.stop()
        return
    answer = question.answer(seconds) if beside is None else beside.answer()
    time = answer.known.get(question.key)
    if time is None:
        found.eta_reason = answer.unknown[question.key]
    else:
        found.eta = Eta(**time.to_dict())


def _known_without(found: Explanation, now: float) -> bool:
    """Whether the state of the job says it already."""
    if found.state in ("gone", "running"):
        runs = "it runs, and only starts of whole jobs are forecast" if found.grows else "it runs"
        found.eta_reason = runs if found.state == "running" else "it has finished"
    elif found.state == "impossible":
        found.eta_reason = "it does not start on the empty cluster"
    elif found.cause.code == "NoPods":
        found.eta_reason = "it has no pods"
    elif found.cause.code == "Starts":
        moment = rfc3339(now)
        found.eta = Eta(moment, moment, moment, moment, "it starts in the next cycle")
    else:
        return False
    return True
