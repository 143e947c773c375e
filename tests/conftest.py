"""What every test shares: how hard hypothesis tries, and who runs what where several run at once.

`HYPOTHESIS_PROFILE` chooses. `ci`, the default, tries the same bounded number of examples each time, and when it fails
it does not look for a smaller one, so that it ends in time; `dev` tries more, at random, and remembers; `soak` is for
nights.

Programs that tests start are interrupted by some of them. Whoever starts the tests in the background may have told
everybody to ignore that; here it counts again.
"""

import os
import signal
from typing import Any

import pytest
from hypothesis import Phase, settings

from tests.distribution import ByDirectory

BOUNDED = (Phase.explicit, Phase.generate)
settings.register_profile(
    "ci", max_examples=60, deadline=None, derandomize=True, database=None, print_blob=True, phases=BOUNDED
)
settings.register_profile("dev", max_examples=200, deadline=None)
settings.register_profile("soak", max_examples=5_000, deadline=None, database=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByDirectory:
    return ByDirectory(config, log)
