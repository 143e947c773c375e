"""An MPIJob whose methods block: for scripts and notebooks."""

import builtins
from collections.abc import Iterator
from typing import Any, Callable, Literal, Optional, TypeVar, Union, overload

# `client` is part of what this module offers: tests put another CustomObjectsApi in its place by this name.
from kubernetes import client as client

from . import jobs, operations
from .description import JobDescription
from .evidence import Explanation
from .ranks import Ranks

Self = TypeVar("Self", bound="MPIJob")


class MPIJob(JobDescription):
    """One MPIJob of kubeflow.org/v2beta1: describe it, create it, wait for it, read its logs.

    Methods that talk to the cluster raise `kubernetes.client.exceptions.ApiException`, with the status and the body of
    what the API server answered. Which cluster it is, the kubeconfig or the pod's service account says.
    """

    def create(self: Self, *, dry_run: bool = False) -> Self:
        """Create the job. With `dry_run` the API server checks it and keeps nothing.

        Raises:
            ValueError: if the operator would refuse it
            ApiException: if the API server does; 422 with "quota exceeded" if its pods would not get in
        """
        operations.create(self, dry_run)
        return self

    def get_status(self) -> str:
        """One of "Pending", "Running", "Succeeded" and "Failed"; `status_detail` says more.

        Raises:
            ApiException: if there is no such job
        """
        return operations.get_status(self).value

    def wait_for_completion(
        self,
        timeout: float = 3600,
        poll_interval: float = 5,
        *,
        callback: Optional[Callable[[str], None]] = None,
        progress: bool = False,
    ) -> str:
        """Wait until the job has ended: "Succeeded" or "Failed".

        It is watched, so its end is known at once; every `poll_interval` seconds it is looked at anyway. `callback` is
        called with the status whenever there is a new one, `progress` shows it.

        Raises:
            TimeoutError: after `timeout` seconds, with what the job waits for
            ApiException: if the job is deleted meanwhile, or the API server is gone
        """
        return operations.wait_for_completion(self, timeout, poll_interval, callback, progress).value

    @overload
    def get_logs(
        self, worker_index: Optional[int] = None, follow: Literal[False] = False, tail_lines: Optional[int] = 1000
    ) -> str: ...
    @overload
    def get_logs(
        self, worker_index: Optional[int] = None, *, follow: Literal[True], tail_lines: Optional[int] = 1000
    ) -> Iterator[str]: ...
    @overload
    def get_logs(
        self, worker_index: Optional[int], follow: Literal[True], tail_lines: Optional[int] = 1000
    ) -> Iterator[str]: ...
    @overload
    def get_logs(
        self, worker_index: Optional[int] = None, follow: bool = False, tail_lines: Optional[int] = 1000
    ) -> Union[str, Iterator[str]]: ...
    def get_logs(
        self, worker_index: Optional[int] = None, follow: bool = False, tail_lines: Optional[int] = 1000
    ) -> Union[str, Iterator[str]]:
        """What the launcher, or one worker, has written; the last `tail_lines` of it, or all with None.

        With `follow` it is an iterator over lines, each with its newline. It waits for the pod, goes on over restarts
        and new attempts of the launcher without losing or repeating a line, and ends when the job does.

        Raises:
            ApiException: if the pod is not there or has not started; NoSuchWorker, which is also a ValueError, if
                the job has no worker of that index
        """
        if follow:
            return operations.follow_logs(self, worker_index, tail_lines)
        return operations.get_logs(self, worker_index, tail_lines)

    def delete(self) -> None:
        """Delete the job and everything that was made for it.

        Raises:
            ApiException: if there is no such job, or it may not be deleted
        """
        jobs.delete(self.namespace, self.name)

    @classmethod
    def get(cls: "type[Self]", name: str, namespace: str = "default") -> Self:
        """A job that exists, as it is in the cluster.

        Raises:
            ApiException: if there is no such job
        """
        return cls._from_document(jobs.get(namespace, name))

    def get_worker_statuses(self) -> "builtins.list[dict[str, Any]]":
        """For each worker's pod: index, name, phase, node, ready, and start_time as a datetime, None before it has one.

        Raises:
            ApiException: if there is no such job
        """
        return operations.get_worker_statuses(self)

    def get_metrics(
        self,
        *,
        prometheus_url: Optional[str] = None,
        token: Optional[str] = None,
        ca_file: Optional[str] = None,
        window: str = "5m",
    ) -> dict[str, Any]:
        """What the workers use, by Prometheus: `workers`, `aggregated`, and where the figures come from.

        A figure that nobody knows is None. Without `prometheus_url` it is PROMETHEUS_URL, else it is looked for in the
        cluster; likewise PROMETHEUS_TOKEN and PROMETHEUS_CA_FILE.

        Raises:
            ApiException: if no Prometheus is found or it does not answer
        """
        return operations.get_metrics(self, prometheus_url, token, ca_file, window)

    def explain(self) -> Explanation:
        """Why the job is as it is: one verdict, its cause, its fix, and what was seen.

        Raises:
            ApiException: if there is no such job
        """
        return operations.explain_job(self)

    def where_ranks_ran(self) -> Ranks:
        """On which workers ranks ran, as far as anything tells.

        Raises:
            ApiException: if there is no such job
        """
        return operations.where_ranks_ran(self)

    def suspend(self: Self) -> Self:
        """Take the job's pods away until `resume()`.

        Raises:
            ApiException: if there is no such job
        """
        operations.set_suspended(self, True)
        return self

    def resume(self: Self) -> Self:
        """Let a suspended job run.

        Raises:
            ApiException: if there is no such job
        """
        operations.set_suspended(self, False)
        return self

    # The last, because from here on `list` in this class is this.
    @classmethod
    def list(
        cls: "type[Self]", namespace: str = "default", label_selector: Optional[str] = None
    ) -> "builtins.list[Self]":
        """The jobs of a namespace, as they are in the cluster.

        Raises:
            ApiException: if they may not be listed
        """
        return [cls._from_document(one) for one in jobs.list_all(namespace, label_selector)]
