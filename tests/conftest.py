"""What every test shares: how hard hypothesis tries.

`HYPOTHESIS_PROFILE` chooses: `ci` (the default) is bounded, `dev` tries more and remembers, `soak` is for nights.
"""

import os

from hypothesis import settings

settings.register_profile("ci", max_examples=60, deadline=None, derandomize=False, database=None, print_blob=True)
settings.register_profile("dev", max_examples=200, deadline=None)
settings.register_profile("soak", max_examples=5_000, deadline=None, database=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
