"""Pool and books keep their bounds, and no region is filled while the other side may still use it."""

import gc
import weakref
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from kpu.sharing.allowance import Allowance
from kpu.sharing.borrowing import Borrowing
from kpu.sharing.lending import Lending, Loan
from kpu.sharing.pool import Pool
from kpu.sharing.regions import make_region, round_up
from kpu.sharing.showing import Showing

PAGE = 4096
SIZES = st.integers(1, 20 * PAGE)


class Block:
    def __init__(self, size: int) -> None:
        self.size = size


class PoolMachine(RuleBasedStateMachine):
    """What goes in comes out once: by being taken, by being pushed out, or by age."""

    out = Bundle("out")

    def __init__(self) -> None:
        super().__init__()
        self.pool, self.now, self.inside = Pool[Block](100, idle_seconds=10), 0.0, set[Block]()

    @rule(target=out, size=st.integers(1, 120))
    def make(self, size):
        return Block(size)

    @rule(block=consumes(out))
    def put(self, block):
        self.inside.add(block)
        self.inside -= set(self.pool.put(block, self.now))

    @rule(target=out, size=st.integers(1, 120))
    def take(self, size):
        block = self.pool.take(size) or Block(size)
        assert block.size >= size
        self.inside.discard(block)
        return block

    @rule(seconds=st.floats(0, 20))
    def wait(self, seconds):
        self.now += seconds
        self.inside -= set(self.pool.expire(self.now))
        assert self.pool.next_expiry is None or self.pool.next_expiry > self.now

    @invariant()
    def bounded_and_accounted_for(self):
        assert self.pool.idle_bytes <= 100
        assert self.pool.idle_bytes == sum(block.size for block in self.inside)


TestPool = PoolMachine.TestCase


class LendingMachine(RuleBasedStateMachine):
    """The sender's book beside what the other side really views."""

    viewed = Bundle("viewed")

    def __init__(self) -> None:
        super().__init__()
        self.allowance = Allowance(40 * PAGE)
        self.lending = Lending(Pool[Loan](16 * PAGE, idle_seconds=5), self.allowance, regions_limit=6)
        self.in_use: dict[int, Loan] = {}
        self.promised: dict[int, Loan] = {}
        self.held_here: Counter[int] = Counter()
        self.written_off: set[int] = set()
        self.now, self.numbers = 0.0, iter(range(1, 10_000))

    @rule(target=viewed, nbytes=SIZES)
    def lend(self, nbytes):
        loan = self.lending.reuse(nbytes)
        if loan is None:
            fits, leaving = self.lending.make_room(nbytes)
            assert not {gone.number for gone in leaving} & self.in_use.keys()
            if not fits:
                return 0
            loan = self.lending.enter(next(self.numbers), make_region(nbytes))
        assert loan.size >= nbytes
        assert loan.number not in self.in_use, "a region that the other side views was filled again"
        assert loan.number not in self.written_off, "a region that the other side may view was filled again"
        assert not self.held_here[loan.number], "a region that we view ourselves was filled again"
        assert loan.number not in self.promised, "a region that is about to come back was filled again"
        self.in_use[loan.number] = loan
        return loan.number

    @rule(number=consumes(viewed))
    def let_go(self, number):
        if number not in self.written_off:
            self.in_use.pop(number, None)
        self.lending.take_back(number, self.now)

    @rule(number=viewed, promise_first=st.booleans(), release_first=st.booleans())
    def get_back(self, number, promise_first, release_first):
        """The promise and the release come in this order by one connection, the tensor some time by another."""
        lent = number in self.in_use
        if number in self.promised:
            return
        if promise_first:
            self.lending.expect_back(number)
        if lent and promise_first and release_first:
            self.lending.take_back(number, self.now)
            del self.in_use[number]
        assert self.lending.hold(number, end=1 << 40) is None
        assert bool(self.lending.hold(number, end=1)) == lent
        if not promise_first:
            self.lending.expect_back(number)
        self.held_here[number] += lent

    @rule(number=viewed)
    def promise_and_release(self, number):
        """The tensor itself is on its way, and does not come if the call fails meanwhile."""
        if number in self.in_use:
            self.lending.expect_back(number)
            self.lending.take_back(number, self.now)
            self.promised[number] = self.in_use.pop(number)

    @rule(number=st.integers(1, 12))
    def drop_what_came_back(self, number):
        if self.held_here[number]:
            self.held_here[number] -= 1
            self.lending.let_go(number, self.now)

    @rule(number=st.integers(0, 12))
    def lie_about_something_not_in_use(self, number):
        if number not in self.in_use:
            self.lending.take_back(number, self.now)

    @rule(number=viewed)
    def fail(self, number):
        loan = self.lending.find(number)
        if loan and self.lending.write_off(number, loan.turn):
            self.written_off.add(number)
            self.in_use.pop(number, None)
        assert not self.promised.pop(number, None) or number in self.written_off, "it would be promised for ever"

    @rule(seconds=st.floats(0, 10))
    def wait(self, seconds):
        self.now += seconds
        assert not {loan.number for loan in self.lending.expire(self.now)} & self.in_use.keys()

    @invariant()
    def within_the_allowance(self):
        held = {number for number, count in self.held_here.items() if count} - self.written_off
        busy = {number: self.lending.find(number) for number in held | self.in_use.keys() | self.promised.keys()}
        known = sum(loan.size for loan in busy.values() if loan) + self.lending.pool.idle_bytes
        assert self.allowance.used == known <= self.allowance.limit

    def teardown(self):
        self.lending.close()
        assert self.allowance.used == 0


TestLending = LendingMachine.TestCase
TestLending.settings = settings(max_examples=50, deadline=None)


@given(st.lists(st.tuples(st.sampled_from(["enter", "view", "let go", "forget"]), st.integers(1, 4)), max_size=40))
def test_a_borrowed_region_stays_until_it_is_forgotten_and_unused(steps):
    allowance = Allowance(3 * PAGE)
    borrowing, memory = Borrowing(allowance, regions_limit=3), make_region(PAGE).memory
    tensors, forgotten = dict[int, int](), set[int]()
    for step, number in steps:
        if step == "enter" and borrowing.has_room_for(number, PAGE):
            borrowing.enter(number, memory)
            tensors[number] = 0
            forgotten.discard(number)
        elif step == "view" and number in tensors and number not in forgotten:
            assert borrowing.view(number, 0, 10).nbytes == 10
            tensors[number] += 1
        elif step == "let go" and tensors.get(number, 0):
            borrowing.let_go(number)
            tensors[number] -= 1
        elif step == "forget" and number in tensors:
            borrowing.forget(number)
            forgotten.add(number)
        for gone in [key for key in forgotten if tensors.get(key) == 0]:
            tensors.pop(gone)
            forgotten.discard(gone)
        assert borrowing.mapped_bytes == allowance.used == PAGE * len(tensors) <= 3 * PAGE
        assert allowance.parts == len(tensors)
    borrowing.close()
    assert allowance.used == allowance.parts == 0


def test_what_one_peer_makes_us_map_is_not_there_for_another():
    allowance, memory = Allowance(9 * PAGE, parts_limit=2), make_region(PAGE).memory
    first, second = (Borrowing(allowance, regions_limit=9) for _ in range(2))
    for number in (1, 2):
        assert first.has_room_for(number, PAGE)
        first.enter(number, memory)
    assert not second.has_room_for(1, PAGE)
    first.forget(1)
    assert not second.has_room_for(1, 9 * PAGE)
    assert second.has_room_for(1, 8 * PAGE)


def test_a_shown_region_lives_until_each_reference_to_it_is_let_go():
    allowance = Allowance(PAGE)
    showing, region = Showing(allowance), make_region(PAGE)
    alive = weakref.ref(region)
    showing.enter(7, region)
    showing.hold(7, region)
    showing.hold(7, region)
    del region
    showing.let_go(7)
    gc.collect()
    assert alive() is not None
    assert allowance.used == PAGE
    showing.let_go(7)
    gc.collect()
    assert alive() is None
    assert allowance.used == 0


def test_a_shown_region_counts_once_for_all_links_and_none_is_shown_beyond_the_allowance():
    allowance, region, another = Allowance(PAGE), make_region(PAGE), make_region(PAGE)
    first, second = Showing(allowance), Showing(allowance)
    assert first.hold(1, region)
    assert first.hold(1, region)
    assert second.hold(1, region)
    assert allowance.used == PAGE
    assert not second.hold(2, another)
    second.close()
    first.let_go(1)
    assert not second.hold(2, another)
    first.let_go(1)
    assert second.hold(2, another)


def test_what_is_taken_of_a_part_is_taken_of_the_whole():
    whole = Allowance(10)
    part, other = Allowance(8, whole), Allowance(8, whole)
    assert part.take(6)
    assert not other.take(5)
    assert other.take(4)
    assert not part.take(1)
    part.give_back(6)
    assert (part.used, other.used, whole.used) == (0, 4, 4)
    assert not part.take(9)


def test_a_region_whose_call_failed_after_the_peer_gave_it_back_is_written_off():
    lending = Lending(Pool[Loan](PAGE, 60), Allowance(PAGE), regions_limit=9)
    assert lending.make_room(PAGE) == (True, [])
    loan = lending.enter(1, make_region(PAGE))
    lending.expect_back(1)
    lending.take_back(1, now=0)
    assert lending.write_off(1, loan.turn) == [loan]
    assert lending.allowance.used == 0


def test_a_call_that_fails_late_leaves_the_region_that_another_call_fills_by_now():
    lending = Lending(Pool[Loan](PAGE, 60), Allowance(PAGE), regions_limit=9)
    assert lending.make_room(PAGE) == (True, [])
    turn = lending.enter(1, make_region(PAGE)).turn
    lending.take_back(1, now=0)
    assert lending.write_off(1, turn) == [], "it is idle"
    again = lending.reuse(PAGE)
    assert again
    assert lending.write_off(1, turn) == []
    assert lending.find(1) is again


def test_links_that_share_an_allowance_leave_room_to_each_other_when_they_forget():
    allowance = Allowance(4 * PAGE)
    first, second = (Lending(Pool[Loan](4 * PAGE, 60), allowance, regions_limit=9) for _ in range(2))
    assert first.make_room(4 * PAGE) == (True, [])
    first.enter(1, make_region(4 * PAGE))
    assert second.make_room(PAGE) == (False, [])
    first.write_off(1, turn=0)
    assert second.make_room(PAGE) == (True, [])
    assert allowance.used == round_up(PAGE)
