"""Several tenants of one card: each gets its share, what is left goes where the policy says, and nobody is in the way
of another for longer than a moment, dead or alive."""

import time

import pytest

from tests.native.machines import end, first_lines
from tests.native.working import Tenant, report_of

PATIENCE_S = 30.0
FIRST_TENANT, BUDGET, REFILLED, TURN_ENDED, KERNEL = 128, 8, 16, 48, 56
"""Where they are in the file of a card and in a tenant, by native/lib/card_file.h."""


def lengths_of_pauses(windows: list[int]) -> list[int]:
    """In tenths of a second."""
    return [len(run) for run in "".join("." if count else "0" for count in windows).split(".")]


def shares_of(*programs) -> list[float]:
    return [report_of(program).percent() for program in programs]


@pytest.mark.parametrize(("first", "second"), [(50, 50), (25, 75), (25, 25)])
def test_two_that_could_fill_the_card_get_their_shares(tenant: Tenant, neighbour: Tenant, first: int, second: int):
    tenant.limit(first)
    neighbour.limit(second)
    got = shares_of(tenant.work(2.2, 500), neighbour.work(2.2, 500))
    assert 0.5 * first < got[0] < first + 4
    assert 0.5 * second < got[1] < second + 4


@pytest.mark.parametrize("long_ms", [30, 60])
def test_one_of_short_kernels_gets_its_share_beside_one_of_long_ones(tenant: Tenant, neighbour: Tenant, long_ms: int):
    """It loses no time that it could not use, and is not kept from the card by one that has nothing left to spend."""
    tenant.limit(45)
    neighbour.limit(45)
    got = shares_of(tenant.work(3.2, long_ms * 1000, depth=2), neighbour.work(3.2, 200))
    assert 33 < got[0] < 49
    assert 36 < got[1] < 49


def test_what_the_other_does_not_use_is_left_unused_where_the_share_is_strict(tenant: Tenant, neighbour: Tenant):
    tenant.limit(50, "cores_policy force")
    neighbour.limit(50, "cores_policy force")
    with neighbour.start("print(launch(1000) or wait(), flush=True)\ninput()") as idle:
        assert first_lines([idle]) == ["0"]
        assert shares_of(tenant.work(1.4, 500))[0] < 53
        idle.communicate("\n", timeout=PATIENCE_S)


def test_what_the_other_does_not_use_may_be_used_where_the_policy_says_so(tenant: Tenant, neighbour: Tenant):
    tenant.limit(25, "cores_policy default")
    neighbour.limit(75, "cores_policy default")
    with neighbour.start("print(launch(1000) or wait(), flush=True)\ninput()") as idle:
        assert first_lines([idle]) == ["0"]
        assert shares_of(tenant.work(1.4, 500))[0] > 55
        idle.communicate("\n", timeout=PATIENCE_S)


def test_where_both_want_all_of_it_the_generous_policy_gives_shares(tenant: Tenant, neighbour: Tenant):
    tenant.limit(25, "cores_policy default")
    neighbour.limit(75, "cores_policy default")
    got = shares_of(tenant.work(2.2, 500), neighbour.work(2.2, 500))
    assert got[0] < 33
    assert got[1] > 40


def test_a_tenant_of_small_kernels_is_not_made_to_wait_for_turns(tenant: Tenant, neighbour: Tenant):
    tenant.limit(50)
    neighbour.limit(50)
    heavy, light = tenant.work(2.0, 500), neighbour.work(2.0, 20, "sync", depth=1)
    got = shares_of(heavy, light)
    assert got[0] < 55
    assert got[1] > 2


@pytest.mark.parametrize(("threads", "batch"), [(8, 1), (64, 4)])
def test_threads_beside_a_tenant_of_small_kernels_get_their_share(
    tenant: Tenant, neighbour: Tenant, threads: int, batch: int
):
    """However long a thread is put aside between asking and launching."""
    tenant.limit(25)
    neighbour.limit(50)
    busy, light = tenant.crowd(2.6, 20, threads, batch), neighbour.crowd(2.6, 50, 4, think_us=900)
    assert 12 < report_of(busy).whole_percent < 30
    report_of(light)


def test_tenants_that_wait_for_their_kernels_are_not_charged_for_each_other(tenant: Tenant, neighbour: Tenant):
    """But for the card's changes from one to the other, which take as long as a kernel here."""
    tenant.limit(50)
    neighbour.limit(50)
    programs = [one.crowd(2.2, 200, 4, think_us=600) for one in (tenant, neighbour)]
    used_ns = [report_of(program).gpu_ns for program in programs]
    for one, used in zip((tenant, neighbour), used_ns, strict=True):
        assert one.told().gpu_ns < 2.3 * used


def test_one_of_low_priority_stops_while_one_of_high_priority_works_and_goes_on_after(
    tenant: Tenant, neighbour: Tenant
):
    tenant.limit(0, "priority 1")
    neighbour.limit(0, "priority 0")
    with tenant.work(2.5, 500) as low:
        time.sleep(0.8)
        high = report_of(neighbour.work(0.8, 500))
        report = report_of(low)
    assert high.percent(slice(1, -1)) > 50
    assert report.windows.count(0) >= 4
    assert report.percent(slice(-4, -1)) > 40


def test_one_of_low_priority_stays_away_from_long_kernels_too(tenant: Tenant, neighbour: Tenant):
    """Between two launches nothing tells of them but that they are under way."""
    tenant.limit(0, "priority 1")
    neighbour.limit(0, "priority 0")
    with tenant.work(3.0, 500) as low:
        time.sleep(0.6)
        report_of(neighbour.work(1.5, 150_000, depth=1))
        report = report_of(low)
    assert report.windows.count(0) >= 8


def test_one_of_low_priority_leaves_no_queue_behind_that_others_would_wait_for(tenant: Tenant, neighbour: Tenant):
    tenant.limit(0, "priority 1")
    neighbour.limit(0, "priority 0")
    ahead = "print('ready', flush=True)\nwhile True: launch(MS)"
    with tenant.start(ahead) as low:
        assert first_lines([low]) == ["ready"]
        time.sleep(1.2)
        script = (
            "took = [seconds(lambda: launch(5 * MS) or wait()) for _ in range(40)]\nprint(sum(took[10:]) < 30 * 0.009)"
        )
        assert neighbour.run(script) == "True", "alone on the card they take 5 ms each, beside another 10 and more"
        end([low])


@pytest.mark.parametrize("priority", ["abc", "-1", ""])
def test_a_priority_that_cannot_be_read_is_a_low_one(tenant: Tenant, neighbour: Tenant, priority: str):
    tenant.limit(0, f"priority {priority}")
    neighbour.limit(0, "priority 0")
    with tenant.work(1.8, 500) as low:
        time.sleep(0.5)
        report_of(neighbour.work(0.8, 500))
        report = report_of(low)
    assert report.windows.count(0) >= 3


def test_a_tenant_that_is_killed_in_its_turn_hinders_nobody(tenant: Tenant, neighbour: Tenant):
    tenant.limit(50)
    neighbour.limit(50)
    with neighbour.work(4.0, 500) as survivor:
        for moment in (0.5, 0.53, 0.51, 0.57):
            victim = tenant.work(30, 500)
            time.sleep(moment)
            victim.kill()
            victim.communicate(timeout=PATIENCE_S)
        report = report_of(survivor)
    assert max(lengths_of_pauses(report.windows)) < 4
    assert report.percent() < 54


def test_a_file_of_the_card_that_is_something_else_is_said_and_the_share_holds(tenant: Tenant):
    (tenant.directory.parent / "cards" / tenant.machine.uuids[0]).write_bytes(b"no file of a card")
    tenant.limit(25)
    with tenant.work(1.4, 500) as program:
        output, _ = program.communicate(timeout=PATIENCE_S)
    assert "cannot be shared: it is no " in output.splitlines()[0]


def test_a_hundred_processes_come_and_go_on_one_card(tenant: Tenant, neighbour: Tenant):
    tenant.limit(20)
    neighbour.limit(20)
    for _ in range(5):
        programs = [one.work(0.05, 50) for one in (tenant, neighbour) for _ in range(10)]
        assert all(report_of(program).launches for program in programs)


def test_nonsense_that_another_tenant_writes_to_the_file_of_the_card_ends_no_program(tenant: Tenant, neighbour: Tenant):
    tenant.limit(50)
    neighbour.limit(50)
    assert report_of(neighbour.work(0.2, 500)).launches
    card = tenant.directory.parent / "cards" / tenant.machine.uuids[0]
    header = card.read_bytes()[:8]
    card.write_bytes(header + b"\xff" * (card.stat().st_size - len(header)))
    assert report_of(tenant.work(0.6, 500)).launches


def test_nonsense_that_is_written_over_a_tenant_stops_it_for_a_while_only(tenant: Tenant):
    """No longer than the worst debt does that a tenant can have, five seconds."""
    tenant.limit(90)
    card = tenant.directory.parent / "cards" / tenant.machine.uuids[0]
    far = 1 << 62
    script = "print(launch(MS), flush=True)\ninput()\nprint({launch(MS) for _ in range(20)}, wait())"
    with tenant.start(script) as program:
        assert first_lines([program]) == ["0"]
        with card.open("r+b") as file:
            for place, nonsense in ((BUDGET, -far), (REFILLED, far), (TURN_ENDED, far), (KERNEL, far)):
                file.seek(FIRST_TENANT + place)
                file.write(nonsense.to_bytes(8, "little", signed=True))
        assert program.communicate("\n", timeout=PATIENCE_S)[0] == "{0} 0\n"
