"""How far back history goes, told with times of our own."""

from tessera.embedded.store.retention import Ages, Retention


def test_nothing_young_is_forgotten():
    ages = Ages(Retention(age_s=60, versions=1_000))
    assert [ages.boundary(now_s, version) for now_s, version in ((0, 10), (30, 20), (59, 30))] == [0, 0, 0]


def test_what_was_the_last_version_an_age_ago_is_the_oldest_now():
    ages = Ages(Retention(age_s=60, versions=1_000))
    for now_s in range(200):
        boundary = ages.boundary(now_s, version=now_s * 10)
        assert boundary == max(0, (now_s - 60) * 10)


def test_a_store_at_rest_ends_with_no_history():
    ages = Ages(Retention(age_s=60, versions=1_000))
    ages.boundary(0, 10)
    assert ages.boundary(60, 10) == 10


def test_more_versions_than_are_kept_are_forgotten_however_young():
    ages = Ages(Retention(age_s=60, versions=1_000))
    assert ages.boundary(0, 1_500) == 500


def test_calls_in_quick_succession_are_not_all_remembered():
    ages = Ages(Retention(age_s=60, versions=1_000))
    for call in range(10_000):
        ages.boundary(call / 1_000, call)
    assert len(ages._marks) == 10
