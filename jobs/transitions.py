"""The states of a stage and its attempts, and the one table of legal moves between them.

An attempt begins ``requested`` and ends in one terminal state, which never changes; going on is a
new attempt. Only the reconciler writes ``lost``. Pure: imports neither Django nor rq.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class State(StrEnum):
    """What an attempt does now, or how it ended. A stage is in the state of its latest attempt."""

    REQUESTED = "requested"  # the row exists, the job is not yet handed to the queue
    QUEUED = "queued"  # the queue has the job
    STARTING = "starting"  # a worker took it; inputs are checked, the config is written
    RUNNING = "running"  # a process works
    STOPPING = "stopping"  # asked to stop; the process is being ended
    SUCCEEDED = "succeeded"  # everything published
    SKIPPED = "skipped"  # left out on request, with a reason; what follows goes on without it
    INCOMPLETE = "incomplete"  # ran to its end and lacks something, as said in the message
    FAILED = "failed"  # ended with an error or a signal
    STOPPED = "stopped"  # ended on request; can be resumed
    LOST = "lost"  # its process vanished without a word


DONE = frozenset({State.SUCCEEDED, State.SKIPPED})
RESUMABLE = frozenset({State.INCOMPLETE, State.FAILED, State.STOPPED, State.LOST})
TERMINAL = DONE | RESUMABLE
ACTIVE = frozenset(set(State) - TERMINAL)
WAITING = frozenset({State.REQUESTED, State.QUEUED})  # for a host, or for a worker of one

MOVES: dict[State, frozenset[State]] = {
    State.REQUESTED: frozenset(
        {State.QUEUED, State.STARTING, State.STOPPING, State.STOPPED, State.FAILED, State.LOST}
    ),
    State.QUEUED: frozenset(
        {State.STARTING, State.STOPPING, State.STOPPED, State.FAILED, State.LOST}
    ),
    State.STARTING: frozenset(
        {State.RUNNING, State.STOPPING, State.STOPPED, State.FAILED, State.INCOMPLETE, State.LOST}
    ),
    State.RUNNING: TERMINAL | {State.STOPPING},
    State.STOPPING: frozenset({State.STOPPED, State.FAILED, State.LOST}) | DONE,
} | {state: frozenset() for state in TERMINAL}


def sources(target: State | str) -> frozenset[State]:
    """The states from which ``target`` can be reached in one move."""
    return frozenset(state for state, moves in MOVES.items() if State(target) in moves)


class RoundState(StrEnum):
    """A round's or an experiment's state, always computed from its stages."""

    PLANNED = "planned"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"
    SUCCEEDED = "succeeded"


def round_state(stage_states: Iterable[State | str | None], *, paused: bool = False) -> RoundState:
    """The state of a round whose stages are in these states (None: the stage has not begun).

    A round whose last begun stage is done and whose next has not begun is running, because the
    pipeline starts it, and stopped where it was asked to pause there.
    """
    states = [None if state is None else State(state) for state in stage_states]
    begun = [state for state in states if state is not None]
    if not begun:
        return RoundState.PLANNED
    if State.STOPPING in begun:
        return RoundState.STOPPING
    if any(state in ACTIVE for state in begun):
        return RoundState.RUNNING
    if any(state in RESUMABLE - {State.STOPPED} for state in begun):
        return RoundState.FAILED
    if State.STOPPED in begun or (paused and None in states):
        return RoundState.STOPPED
    return RoundState.RUNNING if None in states else RoundState.SUCCEEDED
