"""Two schedulers and an API server, small enough to be moved by hand.

The server compares and sets: a lease and pods have versions, and a write carries the version it was decided on. All
else is as bad as it can be. Writes travel; they land or are lost, and so do their answers. Watch events come one by one
and late. Clocks disagree. A replica does nothing for as long as nobody moves it: that is a pause, at any point.

`Rules` say which precautions the replicas take; with all of them off they trust the lease alone.
"""

from dataclasses import dataclass, field

from tessera.engine.deciding import Decider
from tessera.engine.fencing import Fence, Term, may_read_state, may_take_over, may_write
from tessera.engine.ledger import Ledger
from tessera.engine.policies import PolicyBook
from tessera.model.allocations import Allocation
from tessera.model.requests import PodRequest, PolicyChoice
from tests.builders import a_card, a_node, a_pod, a_ref, a_want

FENCE = Fence(lease_duration=15.0, write_timeout=5.0, clock_skew=1.0)
CARD_MIB = 1000
NODE = a_node("node-a", a_card("GPU-0", memory_mib=CARD_MIB))
FOREVER = float("inf")


def a_tenant(memory_mib: int) -> PodRequest:
    return a_pod(a_want(memory_mib=memory_mib), policy=PolicyChoice(node="binpack", cards=("binpack",)))


@dataclass(frozen=True)
class Rules:
    """`wait_out`: heed `may_write` and `may_read_state`. `touch`: a new leader rewrites unbound pods before it reads.

    `prompt`: the network and the process keep `write_timeout`: a write is sent when it was allowed, and lands in time.
    """

    wait_out: bool = True
    touch: bool = False
    prompt: bool = True


@dataclass
class ApiPod:
    request: PodRequest
    version: int
    allocation: Allocation | None = None


@dataclass(frozen=True)
class Event:
    uid: str
    request: PodRequest
    version: int
    allocation: Allocation | None
    deleted: bool = False


@dataclass
class Write:
    """A binding (with a UID) or a term of the lease, on its way."""

    replica: "Replica"
    process: int
    version: int
    sent_at: float
    uid: str = ""
    allocation: Allocation | None = None
    term: Term | None = None
    previous: Term | None = None
    claims: bool = False
    landed: bool = False
    landed_as: int = 0


class ApiServer:
    def __init__(self) -> None:
        self.pods: dict[str, ApiPod] = {}
        self.lease: Term | None = None
        self.lease_version = 0
        self.log: list[Event] = []
        self._version = 0

    def create(self, uid: str, request: PodRequest) -> None:
        self.pods[uid] = ApiPod(request, self._next())
        self._tell(uid)

    def delete(self, uid: str) -> None:
        pod = self.pods.pop(uid)
        self.log.append(Event(uid, pod.request, self._next(), pod.allocation, deleted=True))

    def touch(self, uid: str) -> None:
        """Change nothing but the version."""
        self.pods[uid].version = self._next()
        self._tell(uid)

    def apply(self, write: Write) -> bool:
        if write.term is not None:
            if write.version != self.lease_version:
                return False
            self.lease, self.lease_version = write.term, self._next()
            write.landed_as = self.lease_version
            return True
        pod = self.pods.get(write.uid)
        if pod is None or pod.version != write.version or pod.allocation is not None:
            return False
        pod.allocation, pod.version = write.allocation, self._next()
        self._tell(write.uid)
        return True

    def promised_mib(self) -> int:
        """How much of the card the pods hold."""
        placed = (pod.allocation for pod in self.pods.values() if pod.allocation is not None)
        return sum(share.memory_mib for allocation in placed for share in allocation.shares)

    def _next(self) -> int:
        self._version += 1
        return self._version

    def _tell(self, uid: str) -> None:
        pod = self.pods[uid]
        self.log.append(Event(uid, pod.request, pod.version, pod.allocation))


@dataclass
class Leading:
    """What a leader has in memory."""

    term: Term
    previous: Term | None
    version: int
    to_touch: list[str] | None = None
    ledger: Ledger | None = None


@dataclass
class Replica:
    name: str
    world: "World"
    clock_offset: float = 0.0
    process: int = 0
    leading: Leading | None = None
    seen: dict[str, Event] = field(default_factory=dict[str, Event])
    cursor: int = 0
    pending: dict[str, Write] = field(default_factory=dict[str, Write])

    @property
    def clock(self) -> float:
        return self.world.now + self.clock_offset

    def crash(self) -> None:
        """All memory is lost; what was sent is on its way. It comes back under the same name."""
        self.process += 1
        self._begin(None)

    # the lease

    def campaign(self) -> Write | None:
        """Renew the lease, or try to get it where that is allowed; one's own name on it gives no right but to try."""
        api, now = self.world.api, self.clock
        if self.leading is not None:
            term = Term(holder=self.name, acquired_at=self.leading.term.acquired_at, renewed_at=now)
            return self._send(Write(self, self.process, self.leading.version, self.world.now, term=term))
        lease = api.lease
        if lease is None or lease.holder == self.name or self._may_take_over(lease):
            term = Term(holder=self.name, acquired_at=now, renewed_at=now)
            return self._send(
                Write(self, self.process, api.lease_version, self.world.now, term=term, previous=lease, claims=True)
            )
        return None

    def _may_take_over(self, lease: Term) -> bool:
        if self.world.rules.wait_out:
            return may_take_over(lease, self.clock, FENCE)
        return self.clock >= lease.renewed_at + FENCE.lease_duration

    def may_write(self) -> bool:
        if self.leading is None:
            return False
        if self.world.rules.wait_out:
            return may_write(self.leading.term, self.name, self.clock, FENCE)
        return self.clock < self.leading.term.renewed_at + FENCE.lease_duration

    # the state

    def touch_one(self) -> None:
        """A new leader invalidates whatever its predecessor may still try to bind, pod by pod."""
        if self.leading is None or self.leading.ledger is not None:
            return
        api = self.world.api
        if self.leading.to_touch is None:
            self.leading.to_touch = [uid for uid, pod in api.pods.items() if pod.allocation is None]
        elif self.leading.to_touch:
            uid = self.leading.to_touch.pop()
            if uid in api.pods and api.pods[uid].allocation is None:
                api.touch(uid)

    def load(self) -> None:
        """Read everything, once nothing older can land."""
        leading, rules, api = self.leading, self.world.rules, self.world.api
        if leading is None or leading.ledger is not None:
            return
        if rules.wait_out and not may_read_state(leading.previous, self.clock, FENCE):
            return
        if rules.touch and leading.to_touch != []:
            return
        leading.ledger = Ledger()
        leading.ledger.put_node(NODE)
        self.seen, self.pending, self.cursor = {}, {}, len(api.log)
        for uid, pod in api.pods.items():
            self._learn(Event(uid, pod.request, pod.version, pod.allocation))

    def watch(self) -> None:
        if self.leading is not None and self.leading.ledger is not None and self.cursor < len(self.world.api.log):
            self._learn(self.world.api.log[self.cursor])
            self.cursor += 1

    def _learn(self, event: Event) -> None:
        ledger = self._ledger()
        if event.deleted:
            self.seen.pop(event.uid, None)
            self.pending.pop(event.uid, None)
            ledger.release(event.uid)
            return
        self.seen[event.uid] = event
        if event.allocation is not None:
            self.pending.pop(event.uid, None)
            ledger.adopt(a_ref(event.uid), event.request, event.allocation)

    # pods

    def bind(self, uid: str) -> Write | None:
        """Decide on what was seen, then ask whether to write, then write."""
        if self.leading is None or self.leading.ledger is None:
            return None
        ledger, event = self._ledger(), self.seen.get(uid)
        if event is None or ledger.holding(uid) is not None or uid in self.pending:
            return None
        allocation = Decider(ledger, PolicyBook(ledger.fleet, ledger.live)).choose(event.request)
        if allocation is None or not self.may_write():
            return None
        ledger.reserve(a_ref(uid), event.request, allocation, expires_at=FOREVER)
        write = Write(self, self.process, event.version, self.world.now, uid=uid, allocation=allocation)
        self.pending[uid] = write
        return self._send(write)

    def resolve(self, uid: str) -> None:
        """The answer to a bind does not come: find out, once it can no longer land."""
        write, api = self.pending.get(uid), self.world.api
        if write is None or self.leading is None or self.leading.ledger is None:
            return
        pod = api.pods.get(uid)
        if self.world.rules.touch:
            if pod is not None and pod.allocation is None:
                api.touch(uid)
        elif self.world.now < write.sent_at + FENCE.write_timeout:
            return
        del self.pending[uid]
        if pod is not None and pod.allocation is not None:
            self._ledger().adopt(a_ref(uid), pod.request, pod.allocation)
        else:
            self._ledger().release(uid)

    def hear(self, write: Write) -> None:
        """The answer to a write of this process."""
        if write.process != self.process:
            return
        if write.term is not None:
            self._hear_of_lease(write, write.term)
            return
        if self.pending.get(write.uid) is write:
            del self.pending[write.uid]
            if write.landed:
                self._ledger().commit(write.uid)
            else:
                self._ledger().release(write.uid)

    def _hear_of_lease(self, write: Write, term: Term) -> None:
        if write.claims:
            self._begin(Leading(term, write.previous, write.landed_as) if write.landed else None)
        elif self.leading is not None and self.leading.version == write.version:
            if write.landed:
                self.leading.term, self.leading.version = term, write.landed_as
            else:
                self._begin(None)

    def _begin(self, leading: Leading | None) -> None:
        """A term, or none, begins with an empty memory."""
        self.leading, self.cursor, self.seen, self.pending = leading, 0, {}, {}

    def _ledger(self) -> Ledger:
        assert self.leading is not None
        assert self.leading.ledger is not None
        return self.leading.ledger

    def _send(self, write: Write) -> Write:
        self.world.travelling.append(write)
        return write


class World:
    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.now = 1000.0
        self.api = ApiServer()
        self.travelling: list[Write] = []
        self.answers: list[Write] = []
        self.replicas = [Replica("one", self), Replica("two", self)]

    def pass_time(self, seconds: float) -> None:
        """Where the network is prompt, what has not landed in time never will."""
        self.now += seconds
        if self.rules.prompt:
            due = self.now - FENCE.write_timeout
            self.travelling = [write for write in self.travelling if write.sent_at >= due]

    def land(self, write: Write) -> None:
        self.travelling.remove(write)
        write.landed = self.api.apply(write)
        self.answers.append(write)

    def answer(self, write: Write) -> None:
        self.answers.remove(write)
        write.replica.hear(write)
