"""Life cycles of our own kinds: what a GpuClaim and a GpuGang say of themselves, and what is made for a Compute.

Who gets which cards is decided by the scheduler and written on pods and leases. Here that is read back and told on the
claim, for people and for programs that wait. A Compute becomes a StatefulSet and what belongs to it, and is told of in
the same way. So a status is never a decision: it can be made anew at any time from what the API has, and whoever loses
it loses nothing.

Judgements are pure functions of what was read. What reads and writes around them is thin.
"""
