"""By how much the loss of a node falls (or grows) where one more pod goes there: for whole GPUs, for parts of them, and for none.

A part may be taken from any shared GPU with room or from a whole one: each is an option, and the best one counts.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from navarch.model.resources import BoolArray, FloatArray, IntArray
from navarch.plugins.fragmentation.free_gpus import FreeGpus
from navarch.plugins.fragmentation.measure import Measure
from navarch.plugins.fragmentation.typical_pods import WHOLE

_DIGITS = 6
"""Gains are rounded to so many digits: equal nodes tie whatever order their GPUs were added up in."""


class Need(Struct, frozen=True):
    """What a pod asks for: `whole` GPUs, or the same part of `parts` GPUs (`milli` is per node, since a part may be given in MiB)."""

    cpu: int
    whole: int = 0
    parts: int = 0


def fits(need: Need, milli: IntArray, free: FreeGpus) -> BoolArray:
    """Nodes with enough cpu and GPUs. Anything else is for filters to say."""
    out: BoolArray = (free.cpu >= need.cpu) & (free.whole >= need.whole)
    if need.parts:
        out &= free.whole + (free.shared >= milli[:, None]).sum(axis=1) >= need.parts
    return out


def gains(measure: Measure, need: Need, milli: IntArray, free: FreeGpus, allowed: BoolArray) -> FloatArray:
    """(M,): the loss before less the loss after, in thousandths, for nodes that the pod `fits`."""
    if need.parts:
        options = option_gains(measure, need, milli, free, allowed)
        if need.parts == 1:
            out: FloatArray = options.max(axis=1)
        else:  # the best so many, a whole one as often as there are whole ones
            each = np.arange(need.parts) < free.whole[:, None]
            again = np.where(each, options[:, -1:], -np.inf)
            out = np.sort(np.concatenate((options[:, :-1], again), axis=1), axis=1)[:, -need.parts :].sum(axis=1)
        return np.round(out, _DIGITS)
    sums, total = measure.sums(free.whole, free.shared), free.total
    before = measure.loss(sums, free.cpu, total, allowed)
    after = measure.loss(sums - need.whole * measure.table[WHOLE], free.cpu - need.cpu, total - need.whole * WHOLE, allowed)
    return np.round(before - after, _DIGITS)


def option_gains(measure: Measure, need: Need, milli: IntArray, free: FreeGpus, allowed: BoolArray) -> FloatArray:
    """(M, slots + 1): the same for a part of each shared GPU and, last, of a whole one; minus infinity where there is no room."""
    sums, total = measure.sums(free.whole, free.shared), free.total
    before = measure.loss(sums, free.cpu, total, allowed)
    from_whole = np.where(free.whole > 0, WHOLE, 0)[:, None]
    had: IntArray = np.concatenate((free.shared, from_whole), axis=1)
    possible = had >= milli[:, None]
    left = np.where(possible, had - milli[:, None], had)
    changed = measure.table[left]
    changed -= measure.table[had]
    changed += sums[:, None]
    after = measure.loss(changed, (free.cpu - need.cpu)[:, None], (total - milli)[:, None], allowed[:, None])
    return np.where(possible, before[:, None] - after, -np.inf)
