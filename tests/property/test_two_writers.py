"""However two schedulers, their clocks and the network behave, the API server's pods never over-commit a card."""

import random
from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.property.two_writers import CARD_MIB, FENCE, Replica, Rules, World, Write, a_tenant

TRUSTING = Rules(wait_out=False)
WAITING = Rules()
WAITING_IN_VAIN = Rules(prompt=False)
TOUCHING = Rules(touch=True, prompt=False)
WHICH = st.integers(0, 1)
SECONDS = st.sampled_from([0.0, 0.5, 2.0, 4.5, 8.5, 14.5, 16.0])
OFFSETS = st.sampled_from([0.0, 0.5, FENCE.clock_skew])


def settled(world: World, write: Write | None) -> None:
    """The write lands and its answer arrives."""
    assert write is not None
    world.land(write)
    world.answer(write)


def lead(replica: Replica) -> None:
    """Get the lease and the state, as fast as the rules allow."""
    settled(replica.world, replica.campaign())
    if replica.world.rules.touch:
        touch_everything(replica)
    replica.load()


def touch_everything(replica: Replica) -> None:
    for _ in range(len(replica.world.api.pods) + 1):
        replica.touch_one()


def a_world_with_a_leader(rules: Rules) -> tuple[World, Replica, Replica]:
    world = World(rules)
    one, two = world.replicas
    for uid in ("first", "second", "third"):
        world.api.create(uid, a_tenant(600))
    lead(one)
    return world, one, two


def have_a_turn(replica: Replica, *, renews: bool) -> None:
    """What a scheduler does in its loop before it looks at pods: lead, if it may."""
    write = replica.campaign() if renews or replica.leading is None else None
    if write is not None:
        settled(replica.world, write)
    if replica.world.rules.touch:
        touch_everything(replica)
    replica.load()


def end_of_write(world: World, write: Write, fate: str) -> None:
    if fate == "lost":
        world.travelling.remove(write)
        return
    world.land(write)
    if fate == "answered":
        world.answer(write)


def bind_everything(replica: Replica) -> None:
    """The youngest first, so that the oldest is left for whoever else wants it."""
    for uid in reversed(list(replica.world.api.pods)):
        write = replica.bind(uid)
        if write is not None:
            settled(replica.world, write)


def test_a_leader_alone_fills_the_cards_and_stops() -> None:
    world, one, _ = a_world_with_a_leader(WAITING)

    bind_everything(one)

    assert world.api.promised_mib() == 600


def write_late_and_be_succeeded(rules: Rules) -> World:
    """The leader writes at the end of its lease, and the write lands after its successor has read."""
    world, one, two = a_world_with_a_leader(rules)
    world.pass_time(FENCE.lease_duration - 0.5)
    late = one.bind("first")
    world.pass_time(2.0)
    lead(two)
    bind_everything(two)
    if late is not None and late in world.travelling:
        world.land(late)
    return world


def test_schedulers_that_trust_the_lease_alone_promise_a_card_twice() -> None:
    assert write_late_and_be_succeeded(TRUSTING).api.promised_mib() == 1200


@pytest.mark.parametrize("rules", [WAITING, TOUCHING], ids=["waiting", "touching"])
def test_a_late_write_of_the_former_leader_harms_nobody(rules: Rules) -> None:
    assert write_late_and_be_succeeded(rules).api.promised_mib() == 600


def pause_between_asking_and_writing(rules: Rules) -> World:
    """The leader may write, is stopped for a minute, and then the write leaves."""
    world, one, two = a_world_with_a_leader(rules)
    late = one.bind("first")
    assert late is not None
    world.pass_time(60.0)
    lead(two)
    bind_everything(two)
    if late in world.travelling:
        world.land(late)
    return world


def test_waiting_alone_does_not_help_against_a_process_that_was_stopped_after_it_asked() -> None:
    """Why a new leader must touch the unbound pods too: no wait outlasts every pause."""
    assert pause_between_asking_and_writing(WAITING_IN_VAIN).api.promised_mib() == 1200


def test_a_touched_pod_refuses_the_write_of_a_process_that_was_stopped_after_it_asked() -> None:
    world = pause_between_asking_and_writing(TOUCHING)

    assert world.api.promised_mib() == 600


@pytest.mark.parametrize("rules", [WAITING, TOUCHING], ids=["waiting", "touching"])
def test_a_process_restarted_under_its_own_name_does_not_decide_beside_its_own_last_write(rules: Rules) -> None:
    world, one, _ = a_world_with_a_leader(rules)
    last = one.bind("first")
    assert last is not None
    one.crash()

    lead(one)
    bind_everything(one)
    world.land(last)

    assert world.api.promised_mib() <= CARD_MIB


@pytest.mark.parametrize("rules", [WAITING, TOUCHING], ids=["waiting", "touching"])
def test_an_answer_that_was_lost_frees_nothing_that_landed(rules: Rules) -> None:
    world, one, _ = a_world_with_a_leader(rules)
    write = one.bind("first")
    assert write is not None
    world.land(write)
    world.pass_time(5.5)

    one.resolve("first")
    bind_everything(one)

    assert world.api.promised_mib() == 600
    assert world.api.pods["first"].allocation == write.allocation


@pytest.mark.parametrize("rules", [WAITING, TOUCHING], ids=["waiting", "touching"])
def test_a_successor_gets_to_work_in_the_end(rules: Rules) -> None:
    world, _, two = a_world_with_a_leader(rules)
    world.pass_time(FENCE.lease_duration + FENCE.clock_skew)

    lead(two)
    bind_everything(two)

    assert world.api.promised_mib() == 600


def storm(rules: Rules, seed: int, steps: int = 120) -> int:
    """Much happens by chance; returns the most that the card was ever promised."""
    chance, world, most = random.Random(seed), World(rules), 0
    for number in range(3):
        world.api.create(f"pod-{number}", a_tenant(600))
    for number in range(3, 3 + steps):
        replica = chance.choice(world.replicas)
        match chance.choice(["turn", "turn", "turn", "end", "end", "pod", "watch", "step", "time", "clock"]):
            case "turn":
                have_a_turn(replica, renews=chance.random() < 0.3)
                waiting = sorted(uid for uid, event in replica.seen.items() if event.allocation is None)
                write = replica.bind(chance.choice(waiting)) if waiting else None
                if write is not None and chance.random() < 0.5:
                    settled(world, write)
            case "end" if world.travelling:
                end_of_write(world, chance.choice(world.travelling), chance.choice(["answered", "landed", "lost"]))
            case "pod":
                world.api.delete(chance.choice(sorted(world.api.pods)))
                world.api.create(f"pod-{number}", a_tenant(chance.choice([300, 600, 600])))
            case "watch":
                for _ in range(chance.randrange(1, 9)):
                    replica.watch()
            case "step":
                for uid in list(replica.pending):
                    replica.resolve(uid)
                if chance.random() < 0.2:
                    replica.crash()
            case "time":
                world.pass_time(chance.choice([0.5, 1.0, 4.5, 8.5, 14.5, 16.0]))
            case "clock":
                replica.clock_offset = chance.choice([0.0, 0.5, FENCE.clock_skew])
        most = max(most, world.api.promised_mib())
    return most


@pytest.mark.parametrize("rules", [WAITING, TOUCHING], ids=["waiting", "touching"])
def test_no_storm_makes_careful_schedulers_promise_the_card_twice(rules: Rules) -> None:
    promised = [storm(rules, seed) for seed in range(150)]

    assert max(promised) <= CARD_MIB
    assert sum(memory_mib > 0 for memory_mib in promised) > 100


@pytest.mark.parametrize(
    "rules", [TRUSTING, WAITING_IN_VAIN], ids=["trusting the lease", "waiting though the network is not prompt"]
)
def test_a_storm_finds_what_careless_schedulers_do(rules: Rules) -> None:
    assert any(storm(rules, seed) > CARD_MIB for seed in range(400))


class TwoWriters(RuleBasedStateMachine):
    """Everything that may happen, in any order."""

    precautions: ClassVar[Rules] = WAITING

    def __init__(self) -> None:
        super().__init__()
        self.world = World(self.precautions)
        self.born = 0

    @initialize(offset=OFFSETS)
    def begin(self, offset: float) -> None:
        self.world.replicas[1].clock_offset = offset
        for _ in range(3):
            self.create(600)
        lead(self.world.replicas[0])

    @rule(seconds=SECONDS)
    def time_passes(self, seconds: float) -> None:
        self.world.pass_time(seconds)

    @rule(which=WHICH, seconds=SECONDS, renews=st.booleans(), data=st.data(), travels=st.booleans())
    def a_replica_has_its_turn(
        self, which: int, seconds: float, renews: bool, data: st.DataObject, travels: bool
    ) -> None:
        self.world.pass_time(seconds)
        have_a_turn(self.world.replicas[which], renews=renews)
        self.bind(self.world.replicas[which], data, travels)

    def bind(self, replica: Replica, data: st.DataObject, travels: bool) -> None:
        waiting = sorted(uid for uid, event in replica.seen.items() if event.allocation is None)
        if waiting:
            write = replica.bind(data.draw(st.sampled_from(waiting)))
            if write is not None and not travels:
                settled(self.world, write)

    @rule(which=WHICH, step=st.sampled_from(["campaign", "touch_one", "load", "crash"]))
    def take_one_step(self, which: int, step: str) -> None:
        getattr(self.world.replicas[which], step)()

    @rule(which=WHICH, events=st.integers(1, 4))
    def watch(self, which: int, events: int) -> None:
        for _ in range(events):
            self.world.replicas[which].watch()

    @rule(which=WHICH, data=st.data(), travels=st.booleans())
    def a_replica_binds(self, which: int, data: st.DataObject, travels: bool) -> None:
        self.bind(self.world.replicas[which], data, travels)

    @rule(which=WHICH, data=st.data())
    def resolve(self, which: int, data: st.DataObject) -> None:
        replica = self.world.replicas[which]
        if replica.pending:
            replica.resolve(data.draw(st.sampled_from(sorted(replica.pending))))

    @precondition(lambda self: self.world.travelling)
    @rule(data=st.data(), fate=st.sampled_from(["answered", "landed", "lost"]))
    def a_write_ends(self, data: st.DataObject, fate: str) -> None:
        write = self.world.travelling[data.draw(st.integers(0, len(self.world.travelling) - 1))]
        end_of_write(self.world, write, fate)

    @precondition(lambda self: self.world.answers)
    @rule(data=st.data())
    def an_answer_arrives_late(self, data: st.DataObject) -> None:
        self.world.answer(self.world.answers[data.draw(st.integers(0, len(self.world.answers) - 1))])

    @rule(data=st.data(), what=st.sampled_from(["create", "delete", "correct a clock"]))
    def the_world_moves(self, data: st.DataObject, what: str) -> None:
        if what == "create":
            self.create(data.draw(st.sampled_from([300, 600, 1000])))
        elif what == "delete" and len(self.world.api.pods) > 2:
            self.world.api.delete(data.draw(st.sampled_from(sorted(self.world.api.pods))))
        elif what == "correct a clock":
            self.world.replicas[data.draw(WHICH)].clock_offset = data.draw(OFFSETS)

    def create(self, memory_mib: int) -> None:
        self.born += 1
        self.world.api.create(f"pod-{self.born}", a_tenant(memory_mib))

    @invariant()
    def the_card_is_never_promised_twice(self) -> None:
        assert self.world.api.promised_mib() <= CARD_MIB


class TouchingWriters(TwoWriters):
    precautions = TOUCHING


TwoWriters.TestCase.settings = settings(stateful_step_count=40)
TouchingWriters.TestCase.settings = settings(stateful_step_count=40)
TestWaiting = TwoWriters.TestCase
TestTouching = TouchingWriters.TestCase
