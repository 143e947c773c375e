"""What we measure, each figure beside a peer or a floor from the same run. `make bench` prints all of it."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy loads: its threads cost more than our small sums
