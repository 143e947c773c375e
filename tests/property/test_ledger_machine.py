"""The ledger and the decisions on it, against a model so plain that it can be seen to be right.

The model keeps nodes and pods as the API server would show them and works everything out anew each time. It shares no
arithmetic with the engine: a pod's cost is found by walking through the moments of its life.
"""

import random
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from tessera.engine.deciding import Decider
from tessera.engine.ledger import Ledger, State, figures
from tessera.engine.policies import PolicyBook
from tessera.model.allocations import Allocation, CardShare
from tessera.model.devices import Device, Host, Link, Node
from tessera.model.requests import (
    CardSelector,
    ContainerRequest,
    DeviceRequest,
    HostRequest,
    PodRef,
    PodRequest,
    PolicyChoice,
    Role,
)
from tests.builders import a_share, an_allocation

LEARNING = {"", "defrag", "fgd"}
FOREVER = float("inf")
NAMES = [f"node-{letter}" for letter in "abcde"]


# --- what may come -----------------------------------------------------------------------------------------------


@st.composite
def devices_on(draw: st.DrawFn, name: str) -> tuple[Device, ...]:
    count = draw(st.integers(0, 5))
    vendors = draw(st.lists(st.sampled_from(["NVIDIA", "NVIDIA", "MLU"]), min_size=count, max_size=count))
    kinds = st.sampled_from([(4, 16_384, 100), (2, 8_001, 100), (10, 4_000, 50), (1, 16_384, 100)])
    cards = list[Device]()
    for index, vendor in enumerate(vendors):
        slots, memory, cores = draw(kinds)
        cards.append(
            Device(
                uuid=f"{name}-{index}",
                index=index,
                vendor=vendor,
                model=f"{vendor} {memory}",
                slots=slots,
                memory_mib=memory,
                cores_percent=cores,
                numa=draw(st.integers(0, 1)),
                healthy=draw(st.integers(0, 7)) > 0,
            )
        )
    return tuple(draw(st.permutations(cards)))


@st.composite
def nodes(draw: st.DrawFn) -> Node:
    name = draw(st.sampled_from(NAMES))
    devices = draw(devices_on(name))
    uuids = [device.uuid for device in devices]
    pairs = [(one, other) for one in uuids for other in uuids if one < other]
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=4, unique=True)) if pairs else []
    host = Host(
        cpu_milli=draw(st.sampled_from([4000, 8000, 100_000])),
        memory_bytes=draw(st.sampled_from([2**30, 2**36])),
        pods=draw(st.sampled_from([3, 110])),
        ready=draw(st.integers(0, 9)) > 0,
    )
    return Node(
        name=name,
        host=host,
        devices=devices,
        links=tuple(Link(one, other, draw(st.integers(1, 100))) for one, other in chosen),
        cordoned_uuids=frozenset(draw(st.lists(st.sampled_from(uuids), max_size=1))) if uuids else frozenset(),
    )


SELECTORS = st.sampled_from(
    [
        *[CardSelector()] * 6,
        CardSelector(same_numa=True),
        CardSelector(use_types=("16384",)),
        CardSelector(avoid_types=("4000",)),
        CardSelector(avoid_uuids=("node-a-0", "node-b-1")),
    ]
)
MEMORY = st.one_of(
    st.fixed_dictionaries({"memory_mib": st.sampled_from([0, 1, 999, 3_000, 5_001, 8_000, 16_384])}),
    st.fixed_dictionaries({"memory_percent": st.sampled_from([1, 10, 33, 50, 100])}),
)
WANTS = st.builds(
    lambda memory, **rest: DeviceRequest(**memory, **rest),
    memory=MEMORY,
    vendor=st.sampled_from(["NVIDIA", "NVIDIA", "NVIDIA", "MLU"]),
    count=st.sampled_from([1, 1, 1, 1, 2, 3]),
    cores_percent=st.sampled_from([0, 0, 0, 10, 30, 50, 100, 100]),
    selector=SELECTORS,
)


@st.composite
def containers(draw: st.DrawFn) -> tuple[ContainerRequest, ...]:
    before = draw(st.lists(st.sampled_from([Role.INIT, Role.SIDECAR]), max_size=2))
    roles = [*before, *[Role.APP] * draw(st.integers(1, 2))]
    one_per_vendor = st.lists(WANTS, max_size=2, unique_by=lambda want: want.vendor)
    return tuple(ContainerRequest(role, tuple(draw(one_per_vendor))) for role in roles)


POLICIES = st.builds(
    PolicyChoice,
    node=st.sampled_from(["", "binpack", "spread", "topology-aware", "defrag", "fgd", "best-fit", "dot-product"]),
    cards=st.sampled_from(
        [
            (),
            ("binpack",),
            ("spread",),
            ("mutex",),
            ("numa",),
            ("topology-aware",),
            ("defrag",),
            ("best-fit",),
            ("fgd",),
            ("numa", "binpack"),
            ("mutex", "topology-aware"),
            ("topology-aware", "spread"),
            ("defrag", "numa"),
        ]
    ),
)
HOSTS = st.builds(HostRequest, cpu_milli=st.sampled_from([0, 500, 3000]), memory_bytes=st.sampled_from([0, 2**28]))
SIMPLE = WANTS.map(lambda want: (ContainerRequest(Role.APP, (want,)),))
REQUESTS = st.builds(PodRequest, containers=SIMPLE | containers(), host=HOSTS, policy=POLICIES)


# --- the model ---------------------------------------------------------------------------------------------------


class Pod:
    def __init__(self, ref: PodRef, request: PodRequest, allocation: Allocation, state: State, expires_at: float):
        self.ref, self.request, self.allocation = ref, request, allocation
        self.state, self.expires_at, self.settled = state, expires_at, False

    def wants_alone(self, uuid: str, all_cores: int) -> bool:
        """One container asks for all cores; two that ask for half each are content with company that asks for none."""
        shares = zip(self.request.containers, self.allocation.containers, strict=True)
        lasting = [taken for container, taken in shares if not (self.settled and container.role is Role.INIT)]
        return any(share.uuid == uuid and share.cores_percent >= all_cores for taken in lasting for share in taken)


def cost(request: PodRequest, allocation: Allocation, *, settled: bool) -> dict[str, list[int]]:
    """The most that the pod ever holds of each card from now on, in slots, MiB and cores."""
    roles = [container.role for container in request.containers]
    moments: list[list[int]] = []
    for position, role in enumerate(roles):
        if role is Role.INIT and not settled:
            moments.append([earlier for earlier in range(position) if roles[earlier] is Role.SIDECAR] + [position])
    moments.append([position for position, role in enumerate(roles) if role is not Role.INIT])
    most: dict[str, list[int]] = {}
    for running in moments:
        here: dict[str, list[int]] = {}
        for share in (share for position in running for share in allocation.containers[position]):
            card = here.setdefault(share.uuid, [0, 0, 0])
            card[0] += 1
            card[1] += share.memory_mib
            card[2] += share.cores_percent
        for uuid, card in here.items():
            most[uuid] = [max(pair) for pair in zip(card, most.get(uuid, [0, 0, 0]), strict=True)]
    return most


class World:
    """Nodes and pods, and what follows from them."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}

    def free_cards(self) -> dict[tuple[str, str], tuple[int, ...]]:
        free = {
            (node.name, device.uuid): [device.slots, device.memory_mib, device.cores_percent]
            for node in self.nodes.values()
            for device in node.devices
        }
        for pod in self.pods.values():
            for uuid, taken in cost(pod.request, pod.allocation, settled=pod.settled).items():
                card = free.get((pod.allocation.node, uuid))
                if card is not None:
                    card[:] = [have - less for have, less in zip(card, taken, strict=True)]
        return {key: tuple(card) for key, card in free.items()}

    def free_hosts(self) -> dict[str, tuple[int, int, int]]:
        found = dict[str, tuple[int, int, int]]()
        for name, node in self.nodes.items():
            here = [pod.request.host for pod in self.pods.values() if pod.allocation.node == name]
            found[name] = (
                node.host.cpu_milli - sum(host.cpu_milli for host in here),
                node.host.memory_bytes - sum(host.memory_bytes for host in here),
                node.host.pods - len(here),
            )
        return found

    def held(self, namespace: str, vendor: str) -> tuple[int, int, int]:
        total = [0, 0, 0]
        for pod in self.pods.values():
            if pod.ref.namespace == namespace:
                vendors = {share.uuid: share.vendor for share in pod.allocation.shares}
                for uuid, taken in cost(pod.request, pod.allocation, settled=pod.settled).items():
                    if vendors[uuid] == vendor:
                        total = [sum(pair) for pair in zip(total, taken, strict=True)]
        return (total[0], total[1], total[2])

    def holders(self, node: str, uuid: str) -> list[Pod]:
        return [
            pod
            for pod in self.pods.values()
            if pod.allocation.node == node and uuid in cost(pod.request, pod.allocation, settled=pod.settled)
        ]

    def nodes_for_one(self, want: DeviceRequest, host: HostRequest, *, idle_only: bool) -> set[str]:
        """Where a pod of a single container with a single request fits."""
        hosts, cards = self.free_hosts(), self.free_cards()
        found = set[str]()
        for name, node in self.nodes.items():
            cpu, memory, places = hosts[name]
            short = (host.cpu_milli and cpu < host.cpu_milli) or (host.memory_bytes and memory < host.memory_bytes)
            if not node.host.ready or short or places < 1:
                continue
            good = [
                device
                for device in node.devices
                if _suits(want, device, cards[name, device.uuid], idle_only=idle_only)
                and device.uuid not in node.cordoned_uuids
            ]
            if want.selector.same_numa:
                together = max((sum(d.numa == numa for d in good) for numa in {d.numa for d in good}), default=0)
            else:
                together = len(good)
            if together >= want.count:
                found.add(name)
        return found


def _suits(want: DeviceRequest, device: Device, free: tuple[int, ...], *, idle_only: bool) -> bool:
    slots, memory, cores = free
    idle = slots == device.slots
    wanted_mib = device.memory_mib * want.memory_percent // 100 if want.memory_percent else want.memory_mib
    selector = want.selector
    return (
        device.healthy
        and device.vendor == want.vendor
        and all(word not in device.model for word in selector.avoid_types)
        and (not selector.use_types or any(word in device.model for word in selector.use_types))
        and device.uuid not in selector.avoid_uuids
        and slots >= 1
        and memory >= wanted_mib
        and cores >= want.cores_percent
        and cores > 0
        and (idle or not (idle_only or want.cores_percent >= device.cores_percent))
    )


# --- the machine -------------------------------------------------------------------------------------------------


class LedgerMachine(RuleBasedStateMachine):
    pods = Bundle("pods")

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.away: dict[str, Node] = {}
        self.now = 0.0
        self.born = 0
        self.asked: list[PodRequest] = []
        self.excused: set[tuple[str, str]] = set()  # cards that shrank, or that others bound to
        self.excused_hosts: set[str] = set()
        self.steps = 0
        self.start(Ledger())

    def start(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.book = PolicyBook(ledger.fleet, ledger.live)
        self.decider = Decider(ledger, self.book)

    # nodes

    @rule(node=nodes())
    def put_a_node(self, node: Node) -> None:
        before = self.world.nodes.get(node.name) or self.away.get(node.name)
        known = {device.uuid: device for device in before.devices} if before else {}
        for device in node.devices:
            if self.world.holders(node.name, device.uuid) and _shrank(known.get(device.uuid), device):
                self.excused.add((node.name, device.uuid))
        if any(pod.allocation.node == node.name for pod in self.world.pods.values()):
            self.excused_hosts.add(node.name)
        self.away.pop(node.name, None)
        self.world.nodes[node.name] = node
        self.ledger.put_node(node)

    @initialize(first=nodes(), second=nodes())
    def begin(self, first: Node, second: Node) -> None:
        for node in (first, second):
            self.put_a_node(node)

    @precondition(lambda self: self.world.nodes)
    @rule(data=st.data(), what=st.sampled_from(["health", "host", "order", "loss"]))
    def a_node_changes(self, data: st.DataObject, what: str) -> None:
        node = self.world.nodes[data.draw(st.sampled_from(sorted(self.world.nodes)))]
        match what:
            case "health":
                flipped = data.draw(st.sets(st.integers(0, 4), min_size=1, max_size=2))
                changed = [_flipped(card) if index in flipped else card for index, card in enumerate(node.devices)]
                self._replace(node, devices=tuple(changed))
            case "host":
                cpu, ready = data.draw(st.sampled_from([4000, 8000, 1_000_000])), data.draw(st.booleans())
                self.excused_hosts.add(node.name)
                host = Host(cpu_milli=cpu, memory_bytes=node.host.memory_bytes, pods=node.host.pods, ready=ready)
                self._replace(node, host=host)
            case "order":
                self._replace(node, devices=tuple(data.draw(st.permutations(node.devices))))
            case _:
                self.away[node.name] = self.world.nodes.pop(node.name)
                self.ledger.drop_node(node.name)

    @precondition(lambda self: self.away)
    @rule(data=st.data())
    def a_node_returns(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.away)))
        self.world.nodes[name] = self.away.pop(name)
        self.ledger.put_node(self.world.nodes[name])

    def _replace(self, node: Node, **changes: Any) -> None:
        fields = {field: getattr(node, field) for field in node.__struct_fields__}
        self.world.nodes[node.name] = Node(**{**fields, **changes})
        self.ledger.put_node(self.world.nodes[node.name])

    # pods

    @rule(target=pods, request=REQUESTS, namespace=st.sampled_from(["one", "two"]), lasting=st.integers(1, 30))
    def decide_and_reserve(self, request: PodRequest, namespace: str, lasting: int) -> Any:
        return self._decide(request, namespace, lasting)

    @precondition(lambda self: self.asked)
    @rule(target=pods, data=st.data(), lasting=st.integers(1, 30))
    def decide_for_the_like(self, data: st.DataObject, lasting: int) -> Any:
        """A pod asks for what another asked before: what is remembered of it must still be true."""
        return self._decide(data.draw(st.sampled_from(self.asked[-4:])), "one", lasting)

    def _decide(self, request: PodRequest, namespace: str, lasting: int) -> Any:
        self.asked.append(request)
        self.decider.observe(request)
        allocation = self.decider.choose(request)
        self._check_answer(request, allocation)
        if allocation is None:
            return multiple()
        self.born += 1
        ref = PodRef(namespace, f"pod-{self.born}", f"uid-{self.born}")
        self.ledger.reserve(ref, request, allocation, expires_at=self.now + lasting)
        self.world.pods[ref.uid] = Pod(ref, request, allocation, State.RESERVED, self.now + lasting)
        return ref.uid

    def _check_answer(self, request: PodRequest, allocation: Allocation | None) -> None:
        assert self.decider.choose(request) == allocation, "asked twice, answered differently"
        assert Decider(self.ledger, self.book).choose(request) == allocation, "a cold cache answers differently"
        named = {request.policy.node, *(request.policy.cards or ("",))}
        if not named & LEARNING:
            fresh = Decider(self.ledger, PolicyBook(self.ledger.fleet, self.ledger.live))
            assert fresh.choose(request) == allocation, "a new decider answers differently"
        fleet = self.ledger.fleet
        offered = {fleet.names[int(row)] for row in self.decider.candidates(request).rows}
        refused = [refusal.where for refusal in self.decider.refusals(request)]
        assert sorted([*offered, *refused]) == sorted(self.world.nodes)
        assert bool(offered) == (allocation is not None)
        if allocation is not None:
            rows, scores = self.decider.candidates(request)
            best = [fleet.names[int(row)] for row in rows[scores == scores.max()]]
            assert allocation.node == min(best), "equal scores go to the first name"
        for name in refused:
            assert self.decider.allocate(request, fleet.row_of[name]) is None
        self._check_offers(request, offered)
        if len(request.containers) == 1 and len(request.containers[0].devices) == 1:
            want, idle_only = request.containers[0].devices[0], "mutex" in request.policy.cards
            assert offered == self.world.nodes_for_one(want, request.host, idle_only=idle_only)

    def _check_offers(self, request: PodRequest, offered: set[str]) -> None:
        """Whatever the filter lets through, bind can reserve, with as many cards as wanted."""
        for name in sorted(offered):
            allocation = self.decider.allocate(request, self.ledger.fleet.row_of[name])
            assert allocation is not None
            trial = self._rebuilt(0)
            trial.reserve(PodRef("trial", "trial", "trial"), request, allocation, expires_at=FOREVER)
            for container, shares in zip(request.containers, allocation.containers, strict=True):
                for want in container.devices:
                    self._check_shares(name, want, [share for share in shares if share.vendor == want.vendor])

    def _check_shares(self, name: str, want: DeviceRequest, shares: list[CardShare]) -> None:
        sizes = {device.uuid: device.memory_mib for device in self.world.nodes[name].devices}
        assert len({share.uuid for share in shares}) == len(shares) == want.count
        for share in shares:
            assert share.cores_percent == want.cores_percent
            assert share.memory_mib == (sizes[share.uuid] * want.memory_percent // 100 or want.memory_mib)

    @rule(data=st.data(), request=REQUESTS)
    def someone_else_binds(self, data: st.DataObject, request: PodRequest) -> None:
        """A pod appears on cards that nobody asked us about."""
        places = [(n.name, d) for n in [*self.world.nodes.values(), *self.away.values()] for d in n.devices]
        if not places:
            return
        name, device = data.draw(st.sampled_from(places))
        shares = [a_share(device.uuid, 2000, 20, vendor=device.vendor) for _ in request.containers]
        self.born += 1
        ref = PodRef("one", f"pod-{self.born}", f"uid-{self.born}")
        allocation = an_allocation(name, *shares)
        self.ledger.adopt(ref, request, allocation)
        self.world.pods[ref.uid] = Pod(ref, request, allocation, State.BOUND, FOREVER)
        self.excused.add((name, device.uuid))
        self.excused_hosts.add(name)

    @rule(uid=pods, step=st.sampled_from(["commit", "renew", "adopt", "settle", "drain"]))
    def a_pod_moves_on(self, uid: str, step: str) -> None:
        pod = self.world.pods.get(uid)
        if pod is None:
            return
        match step:
            case "commit":
                self.ledger.commit(uid)
                if pod.state is State.RESERVED:
                    pod.state, pod.expires_at = State.BOUND, FOREVER
            case "renew":
                pod.expires_at = max(pod.expires_at, self.now + 20)
                self.ledger.reserve(pod.ref, pod.request, pod.allocation, expires_at=self.now + 20)
            case "adopt" if pod.state is not State.DRAINING:
                self.ledger.adopt(pod.ref, pod.request, pod.allocation)
                pod.state, pod.expires_at = State.BOUND, FOREVER
            case "settle":
                self.ledger.settle(uid)
                pod.settled = True
            case "drain":
                self.ledger.drain(uid)
                pod.state, pod.expires_at = State.DRAINING, FOREVER

    @rule(uid=consumes(pods))
    def release(self, uid: str) -> None:
        self.ledger.release(uid)
        self.world.pods.pop(uid, None)

    @rule(later=st.integers(0, 20))
    def expire(self, later: int) -> None:
        self.now += later
        late = {pod.ref for pod in self.world.pods.values() if pod.expires_at <= self.now}
        assert set(self.ledger.expire(self.now)) == late
        for ref in late:
            del self.world.pods[ref.uid]

    @rule(seed=st.integers(0, 2**16))
    def restart(self, seed: int) -> None:
        """Only what the API server shows survives: bound pods and nodes."""
        self.world.pods = {uid: pod for uid, pod in self.world.pods.items() if pod.state is State.BOUND}
        self.start(self._rebuilt(seed))

    # what holds after every step

    @invariant()
    def the_ledger_says_what_the_model_says(self) -> None:
        assert dict(figures(self.ledger)) == self.world.free_cards()
        assert _hosts(self.ledger) == self.world.free_hosts()
        for namespace in ("one", "two"):
            for vendor in ("NVIDIA", "MLU"):
                assert self.ledger.held(namespace, vendor) == self.world.held(namespace, vendor)
        assert {h.ref.uid: (h.state, h.expires_at, h.initialised) for h in self.ledger} == {
            uid: (pod.state, pod.expires_at, pod.settled) for uid, pod in self.world.pods.items()
        }

    @invariant()
    def nothing_is_promised_twice(self) -> None:
        free = self.world.free_cards()
        for (name, uuid), card in free.items():
            holders = self.world.holders(name, uuid)
            if not holders:
                self.excused.discard((name, uuid))
            if (name, uuid) not in self.excused:
                assert min(card) >= 0
                total = next(d.cores_percent for d in self.world.nodes[name].devices if d.uuid == uuid)
                alone = [pod for pod in holders if pod.wants_alone(uuid, total)]
                assert not alone or len(holders) == 1
        for name, host in self.world.free_hosts().items():
            assert name in self.excused_hosts or min(host) >= 0
        short = {(found.node, found.uuid): found.missing for found in self.ledger.overcommitted()}
        assert short == {key: tuple(max(0, -figure) for figure in card) for key, card in free.items() if min(card) < 0}

    @invariant()
    def a_rebuilt_ledger_is_the_same(self) -> None:
        self.steps += 1
        rebuilt = self._rebuilt(self.steps)
        assert figures(rebuilt) == figures(self.ledger)
        assert _hosts(rebuilt) == _hosts(self.ledger)
        assert rebuilt.live == self.ledger.live
        assert rebuilt._held == self.ledger._held

    def _rebuilt(self, seed: int) -> Ledger:
        ledger = Ledger()
        events: list[Node | Pod] = [*self.world.nodes.values(), *self.world.pods.values()]
        random.Random(seed).shuffle(events)
        for event in events:
            if isinstance(event, Node):
                ledger.put_node(event)
                continue
            ledger.adopt(event.ref, event.request, event.allocation)
            if event.settled:
                ledger.settle(event.ref.uid)
        return ledger


def _hosts(ledger: Ledger) -> dict[str, tuple[int, int, int]]:
    fleet = ledger.fleet
    return {
        name: (int(fleet.cpu_free[row]), int(fleet.memory_free[row]), int(fleet.pods_free[row]))
        for name, row in fleet.row_of.items()
    }


def _shrank(before: Device | None, now: Device) -> bool:
    return (
        before is None
        or now.slots < before.slots
        or now.memory_mib < before.memory_mib
        or now.cores_percent < before.cores_percent
    )


def _flipped(device: Device) -> Device:
    fields = {field: getattr(device, field) for field in device.__struct_fields__}
    return Device(**{**fields, "healthy": not device.healthy})


LedgerMachine.TestCase.settings = settings(stateful_step_count=30)
TestTheLedger = LedgerMachine.TestCase
