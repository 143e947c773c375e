"""What we measure, each figure beside a peer or a floor from the same run. `make bench` prints all of it."""
