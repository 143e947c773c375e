"""Whether a container is started again, and when. Pure."""

import msgspec

from tessera.embedded.runtime.states import Terminated


class Restarts(msgspec.Struct, frozen=True, kw_only=True):
    """The first restart is at once, the next after `first_s`, each further one twice as late, up to `most_s`.

    A container that ran for `calm_s` begins anew.
    """

    first_s: float = 10.0
    most_s: float = 300.0
    calm_s: float = 600.0

    def wait_s(self, crashes: int) -> float:
        """`crashes` in a row, counted from 1."""
        if crashes <= 1:
            return 0.0
        return min(self.first_s * 2.0 ** min(crashes - 2, 60), self.most_s)

    def count(self, crashes: int, ended: Terminated) -> int:
        """Crashes in a row, with this one."""
        ran_s = (ended.finished_at - ended.started_at).total_seconds() if ended.started_at else 0.0
        return 1 if ran_s >= self.calm_s else crashes + 1


def should_restart(policy: str, exit_code: int) -> bool:
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)
