"""Logs as they are written, whatever happens to the connection, the container or the pod.

Each line is asked for with its timestamp. After a break the log is read again from the second of the last line, and
lines of that second that were already given are passed over: so none is lost and none comes twice. A container that was
restarted has its earlier log read first (`previous`), also where the pod as it was last seen did not tell of it yet; a
launcher that was tried again is another pod, and is followed in its turn. All ends when the job has ended and
everything it wrote was given.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any, Callable, Optional

from kubernetes.client.exceptions import ApiException

from . import api
from .documents import Document, int_at, mapping_at
from .errors import api_error, status_of
from .pods import (
    Pod,
    container_status,
    has_started,
    is_finished,
    may_be_restarted,
    mpi_container,
    name_of,
    oldest_first,
    uid_of,
)
from .stopping import pause
from .watching import patiently, wait_for_change

LOOK_S = 0.25
LONGEST_LOOK_S = 3.0
QUIET_S = 60.0
"""After so long without a line the connection is renewed: it may be dead, and nobody would tell."""
WORKERS_QUIET_S = 5.0
"""A worker is looked at more often: it may be left running when the job ends, and then nothing ends its log."""
KUBELETS_OWN = "unable to retrieve container logs for "
"""A kubelet whose container is just being replaced answers this in the place of the log, without a stamp."""
NO_LOG = (400, 404)
"""The container has none now, or the pod is gone: the next look at the pod tells."""
Stamped = tuple[str, str]
_STAMP = re.compile(
    r"(?P<whole>[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.(?P<fraction>[0-9]+))?"
    r"(?P<zone>Z|[+-][0-9]{2}:[0-9]{2}) "
)


class Seen:
    """Which lines of the last second were given already. Of a log whose tail was wanted, nothing before it is new."""

    def __init__(self, is_tail: bool) -> None:
        self.last = ""
        self._is_tail = is_tail
        self._first: Optional[str] = None
        self._of_the_last_second: Counter[Stamped] = Counter()
        self._again: Counter[Stamped] = Counter()
        self._resumed_at = ""

    def begin_again(self) -> None:
        """What comes from now on may have come before."""
        self._again = Counter(self._of_the_last_second)
        self._resumed_at = _second(self.last)

    def is_new(self, line: Stamped) -> bool:
        second = _second(line[0])
        if line[0] and second < self._resumed_at:
            return False
        if self._again[line]:
            self._again[line] -= 1
            return False
        if line[0] and self._is_before_the_tail(line[0]):
            return False
        self._first = line[0] if self._first is None else self._first
        if second > _second(self.last):
            self._of_the_last_second.clear()
        self.last = max(self.last, line[0])
        if second >= _second(self.last):
            self._of_the_last_second[line] += 1
        return True

    def _is_before_the_tail(self, stamp: str) -> bool:
        """Lines of one stamp come in their order: while given ones are still to come again, this is an earlier one."""
        if not self._is_tail or self._first is None or not self._resumed_at:
            return False
        return stamp < self._first or (stamp == self._first and any(self._again.values()))

    @property
    def since(self) -> Optional[str]:
        """From where to read on; API servers know whole seconds only."""
        return f"{_second(self.last)}Z" if self.last else None


class Follower:
    """`query` finds the pods, of which `own` are the job's; `is_done` tells whether it has ended, and is asked first;
    `may_outlive` that a pod may run after it.
    """

    def __init__(
        self,
        namespace: str,
        query: Mapping[str, object],
        own: Callable[[list[Pod]], list[Pod]],
        is_done: Callable[[], bool],
        tail_lines: Optional[int],
        nothing_left: str,
        may_outlive: bool,
    ) -> None:
        self._path = api.in_namespace(namespace, "pods")
        self._query = query
        self._own = own
        self._is_done = is_done
        self._tail = tail_lines
        self._nothing_left = nothing_left
        self._may_outlive = may_outlive

    def lines(self) -> Iterator[str]:
        was_done = self._is_done()
        found = self._find()
        pods = self._own(oldest_first(found))
        if was_done and not pods:
            raise api_error(404, self._nothing_left)
        done_with = {uid_of(pod) for pod in pods[:-1]}
        tail = self._tail if pods and has_started(pods[-1]) else None
        look_s = LOOK_S
        while True:
            for pod in pods:
                if uid_of(pod) not in done_with and has_started(pod):
                    yield from self._log_of(pod, tail).lines()
                    done_with.add(uid_of(pod))
                    tail, look_s = None, LOOK_S
            if was_done:
                return
            wait_for_change(self._path, self._query, found, look_s)
            look_s = min(look_s * 1.2, LONGEST_LOOK_S)
            was_done = self._is_done()
            found = self._find()
            pods = self._own(oldest_first(found))

    def _log_of(self, pod: Pod, tail: Optional[int]) -> "PodLog":
        return PodLog(self._path, pod, tail, self._look_at, self._is_done, self._may_outlive)

    def _find(self) -> Document:
        return patiently(lambda: api.get(self._path, self._query))

    def _look_at(self, pod: Pod) -> Optional[Pod]:
        return next((one for one in self._own(oldest_first(self._find())) if uid_of(one) == uid_of(pod)), None)


class PodLog:
    """The log of one pod, over all restarts of its container."""

    def __init__(
        self,
        pods_path: str,
        pod: Pod,
        tail_lines: Optional[int],
        look: Callable[[Pod], Optional[Pod]],
        is_done: Callable[[], bool],
        may_outlive: bool,
    ) -> None:
        self._path = f"{pods_path}/{name_of(pod)}/log"
        self._pod = pod
        self._look = look
        self._is_done = is_done
        self._tail = tail_lines
        self._may_outlive = may_outlive
        self._seen = Seen(is_tail=tail_lines is not None)
        self._restarts = _restarts(pod)

    def lines(self) -> Iterator[str]:
        """Until the pod has finished or is gone, or the job is done and nothing of it runs any more."""
        if self._tail == 0:
            self._pass_over_what_is_there()
        if self._tail is None and self._restarts:
            yield from self._earlier()  # it was restarted before it was first seen
        while True:
            yield from self._pass()
            now = self._look(self._pod)
            if now is None:
                return
            self._pod = now
            if _restarts(now) > self._restarts:
                self._restarts = _restarts(now)
                yield from self._earlier()
            elif is_finished(now) or (self._is_done() and (self._may_outlive or not _is_running(now))):
                yield from self._pass(is_last=True)
                return
            else:
                pause(LOOK_S)

    def _pass_over_what_is_there(self) -> None:
        """Who wants no tail wants all that comes from now on, also what comes while a connection is renewed."""
        for line in self._all_of({"tailLines": 1}):
            self._seen.is_new(line)

    def _earlier(self) -> list[str]:
        """What the container before this one wrote, if there was one, and was not given yet."""
        written = self._all_of({"previous": "true"})
        self._seen.begin_again()
        return [line[1] for line in written if self._seen.is_new(line)]

    def _pass(self, is_last: bool = False) -> Iterator[str]:
        """What is there and was not given yet, and unless the container has ended, what comes."""
        follow = not is_last and _is_running(self._pod)
        has_begun, unfinished = False, None
        try:
            for line in self._stamped({"follow": "true"} if follow else {}):
                if not has_begun:
                    yield from self._what_came_before()
                    self._seen.begin_again()
                    has_begun = True
                if not line[1].endswith("\n") and follow:
                    unfinished = line
                elif self._seen.is_new(line):
                    yield line[1]
        except ApiException as error:
            if status_of(error) not in (*api.TRANSIENT, *NO_LOG):
                raise
        # The last line of a log may have no end. It is given once it is known that none will come.
        if unfinished is not None and not _is_running(self._look(self._pod) or {}) and self._seen.is_new(unfinished):
            yield unfinished[1]

    def _what_came_before(self) -> list[str]:
        """The log that is being read may be that of a container which is younger than what is known of the pod."""
        is_tail = self._tail is not None and not self._seen.last
        return [] if is_tail or not may_be_restarted(self._pod) else self._earlier()

    def _all_of(self, options: Mapping[str, object]) -> list[Stamped]:
        try:
            return patiently(lambda: list(self._stamped(options)))
        except ApiException as error:
            if status_of(error) not in NO_LOG:
                raise
            return []

    def _stamped(self, options: Mapping[str, object]) -> Iterator[Stamped]:
        quiet_s = WORKERS_QUIET_S if self._may_outlive else QUIET_S
        for line in api.lines(self._path, self._query(options), quiet_s):
            stamped = _stamped(line)
            if stamped[0] or not stamped[1].startswith(KUBELETS_OWN):
                yield stamped

    def _query(self, options: Mapping[str, object]) -> Mapping[str, object]:
        query: Document = {"container": mpi_container(self._pod), "timestamps": "true", **options}
        if self._seen.since:
            query["sinceTime"] = self._seen.since
        elif self._tail and "previous" not in options:
            query["tailLines"] = self._tail
        return query


def _stamped(line: bytes) -> Stamped:
    """A line that has no stamp is given as it is: some servers may not know how to stamp."""
    text = line.decode(errors="replace")
    match = _STAMP.match(text)
    return (_sortable(match), text[match.end() :]) if match else ("", text)


def _sortable(stamp: "re.Match[str]") -> str:
    """In UTC and with nine digits after the second: nodes have zones, and zeros at the end may be missing."""
    whole, zone = stamp["whole"], stamp["zone"]
    if zone != "Z":
        moment = datetime.strptime(f"{whole}{zone.replace(':', '')}", "%Y-%m-%dT%H:%M:%S%z")
        whole = moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{stamp['fraction'] or '':0<9}"


def _second(stamp: str) -> str:
    return stamp.partition(".")[0]


def _restarts(pod: Pod) -> int:
    return int_at(container_status(pod), "restartCount") or 0


def _is_running(pod: Mapping[str, Any]) -> bool:
    return "running" in mapping_at(container_status(pod), "state")
