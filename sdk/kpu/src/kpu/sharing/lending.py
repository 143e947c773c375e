"""The sender's book: which regions the other side knows, and which of them it still uses.

Pure: no socket, no clock. A region that was lent belongs to the receiver until it says that the tensor is gone; only
then may the pool fill it again. A region stays with the one peer it was handed to, because that peer can go on reading
it for ever: what is meant for another never goes through it.
"""

from dataclasses import dataclass, field

from kpu.sharing.allowance import Allowance
from kpu.sharing.pool import Pool
from kpu.sharing.regions import Region, round_up


@dataclass(eq=False)
class Loan:
    """One region known to the peer under a number.

    `out` says that a tensor of the peer may lie in it, `held` how many of ours do because the peer gave them back.
    `promised` counts those that it said it gives back and that have not come. They come by another connection, and
    may overtake the promise: then it is below 0 for a while. `turn` counts how often the region was lent.
    """

    number: int
    region: Region
    out: bool = True
    held: int = 0
    promised: int = 0
    turn: int = 0

    @property
    def size(self) -> int:
        return self.region.size


@dataclass
class Lending:
    pool: Pool[Loan]
    allowance: Allowance
    regions_limit: int
    _loans: dict[int, Loan] = field(default_factory=dict[int, Loan])

    def reuse(self, nbytes: int) -> Loan | None:
        """A warm region that the peer has let go of, now out again."""
        loan = self.pool.take(nbytes)
        if loan:
            loan.out, loan.promised, loan.turn = True, 0, loan.turn + 1
        return loan

    def may_come_back(self, nbytes: int) -> bool:
        """Whether a region that is out would do for these bytes."""
        return any(self.pool.fits(loan, nbytes) for loan in self._loans.values())

    def make_room(self, nbytes: int) -> tuple[bool, list[Loan]]:
        """May a new region of this size be made? Idle ones leave first where they stand in the way."""
        size, leaving = round_up(nbytes), list[Loan]()
        fits = len(self._loans) < self.regions_limit and self.allowance.take(size)
        if not fits:
            leaving = self.part_with_idle()
            fits = len(self._loans) < self.regions_limit and self.allowance.take(size)
        return fits, leaving

    def refuse_room(self, nbytes: int) -> None:
        """The region for which room was made does not come."""
        self.allowance.give_back(round_up(nbytes))

    def enter(self, number: int, region: Region) -> Loan:
        """Note a new region, for which room was made, as out."""
        loan = Loan(number, region)
        self._loans[loan.number] = loan
        return loan

    def find(self, number: int) -> Loan | None:
        return self._loans.get(number)

    def take_back(self, number: int, now: float) -> list[Loan]:
        """The peer let go: the region may be filled again. A peer that says it twice is not believed twice."""
        loan = self._loans.get(number)
        if loan is None or not loan.out:
            return []
        loan.out = False
        return self._idle(loan, now)

    def expect_back(self, number: int) -> None:
        """The peer says that it gives back what it was lent."""
        loan = self._loans.get(number)
        if loan and loan.out:
            loan.promised += 1

    def hold(self, number: int, end: int) -> Loan | None:
        """What the peer was lent comes back as a tensor of ours; None when it was not lent as much as that."""
        loan = self._loans.get(number)
        if loan is None or not (loan.out or loan.promised > 0) or end > loan.size:
            return None
        loan.held += 1
        loan.promised -= 1
        return loan

    def let_go(self, number: int, now: float) -> list[Loan]:
        """A tensor of ours that lay in a region of ours is gone."""
        loan = self._loans.get(number)
        if loan is None:
            return []
        loan.held -= 1
        return self._idle(loan, now)

    def write_off(self, number: int, turn: int) -> list[Loan]:
        """Nobody can tell whether the peer uses this one, or gives it back: it is never filled again.

        One that came back is idle, or lent for another turn already, and stays.
        """
        loan = self._loans.get(number)
        if loan is None or loan.turn != turn or self._is_idle(loan):
            return []
        return self._strike([loan])

    def expire(self, now: float) -> list[Loan]:
        return self._strike(self.pool.expire(now))

    def part_with_idle(self) -> list[Loan]:
        return self._strike(self.pool.clear())

    def close(self) -> None:
        self.pool.clear()
        self._strike(list(self._loans.values()))

    def _idle(self, loan: Loan, now: float) -> list[Loan]:
        return self._strike(self.pool.put(loan, now)) if self._is_idle(loan) else []

    def _is_idle(self, loan: Loan) -> bool:
        return not loan.out and not loan.held and loan.promised <= 0

    def _strike(self, loans: list[Loan]) -> list[Loan]:
        for loan in loans:
            del self._loans[loan.number]
            self.allowance.give_back(loan.size)
        return loans
