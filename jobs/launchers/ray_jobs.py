"""Ray's Job Submission API, as little of it as the launcher needs, with errors people can act on.

The ``ray`` package is imported when a client is made; where it is missing the error says what to
install. Times out instead of hanging when the job server is gone.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from trainer.errors import InputError

T = TypeVar("T")
#: an answer that asking again will not change (but 404, 408 and 429)
_REFUSED = re.compile(r"status code (4(?!04|08|29)\d\d)")
JobState = Literal["pending", "running", "succeeded", "failed", "stopped", "unknown"]
ENDED: frozenset[JobState] = frozenset({"succeeded", "failed", "stopped"})
RUNS: frozenset[JobState] = frozenset({"pending", "running"})
PATIENCE_S = 60.0
#: a cluster that was just started answers before it can run jobs
SUBMIT_PATIENCE_S = 300.0


class JobServerGone(RuntimeError):
    """The cluster's job server does not answer any more."""


@dataclass(frozen=True, slots=True)
class JobStatus:
    """Where a job stands; ``exit_code`` is its entry point's, where Ray knows it."""

    state: JobState
    message: str = ""
    exit_code: int | None = None

    @property
    def ended(self) -> bool:
        """The job will not change any more."""
        return self.state in ENDED


class RayJobs:
    """The job server at ``address`` (``http://host:8265``)."""

    def __init__(self, address: str, *, patience: float = PATIENCE_S) -> None:
        self.address = address
        self._patience = patience
        self._client: Any = self._retry(lambda: _make_client(address))

    def submit(
        self,
        entrypoint: str,
        submission_id: str,
        *,
        environment: Mapping[str, str],
        resources: Mapping[str, float] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> str:
        """Start a job on the cluster and return its id.

        Repeated while the cluster is not ready: the id is ours, so a job is never started twice.
        """

        def ask() -> str:
            if self.status(submission_id).state != "unknown":
                return submission_id  # an answer was lost, the job was not
            return str(
                self._client.submit_job(
                    entrypoint=entrypoint,
                    submission_id=submission_id,
                    runtime_env={"env_vars": dict(environment)},
                    metadata=dict(metadata or {}),
                    entrypoint_resources=dict(resources) if resources else None,
                )
            )

        return self._retry(ask, patience=max(self._patience, SUBMIT_PATIENCE_S))

    def status(self, submission_id: str) -> JobStatus:
        """Where a job stands; ``unknown`` when the server has never heard of it."""

        def ask() -> JobStatus:
            try:
                info = self._client.get_job_info(submission_id)
            except RuntimeError as error:
                if "404" in str(error) or "does not exist" in str(error):
                    return JobStatus("unknown")
                raise
            state: Any = info.status.value.lower()
            return JobStatus(state, info.message or "", getattr(info, "driver_exit_code", None))

        return self._retry(ask)

    def logs(self, submission_id: str) -> str:
        """Everything the job has written so far."""
        return str(self._retry(lambda: self._client.get_job_logs(submission_id)))

    async def tail(self, submission_id: str) -> AsyncIterator[str]:
        """The job's output from its beginning, as it comes."""
        async for text in self._client.tail_job_logs(submission_id):
            yield text

    def stop(self, submission_id: str) -> None:
        """Ask the job's entry point to end; Ray kills it when it does not."""
        self._retry(lambda: self._client.stop_job(submission_id))

    def _retry(self, ask: Callable[[], T], *, patience: float | None = None) -> T:
        """Ask again while the server is only slow.

        Raises JobServerGone after ``patience``, and InputError at once for what it refuses.
        """
        patience = self._patience if patience is None else patience
        deadline = time.monotonic() + patience
        while True:
            try:
                return ask()
            except (ConnectionError, OSError, RuntimeError) as error:
                refused = _REFUSED.search(str(error))
                if refused is not None:
                    raise InputError(
                        f"the job server refuses with HTTP {refused[1]}: {str(error)[:400]}",
                        field="cluster.address",
                        value=self.address,
                        remedy="correct the address, the token or the job's environment",
                    ) from error
                if time.monotonic() >= deadline:
                    raise JobServerGone(
                        f"{self.address} does not answer for {patience:.0f} s: {error}"
                    ) from error
                time.sleep(0.5)


def _make_client(address: str) -> Any:
    try:
        from ray.job_submission import JobSubmissionClient
    except ImportError as error:
        raise InputError(
            "Ray is not installed here",
            field="launcher",
            value=address,
            remedy='pip install "ray[default]" (requirements/gpu.txt)',
        ) from error
    return JobSubmissionClient(address)
