"""Step by step through the life of the webhook's certificates."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from tessera.admission.certificates.authorities import is_signed_by, names_of, read_certificate
from tessera.admission.certificates.renewal import Lifetimes, Material, Step, next_step, split_bundle, take_step
from tessera.errors import InvalidInput

START = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("hami-scheduler.kube-system.svc", "10.0.0.7")
LIFETIMES = Lifetimes(authority=timedelta(days=365), serving=timedelta(days=90), announced=timedelta(minutes=10))


def at(days: float) -> datetime:
    return START + timedelta(days=days)


def begun() -> Material:
    return take_step(Step.BEGIN, None, NAMES, LIFETIMES, START)


def step_at(material: Material | None, now: datetime, names=NAMES) -> Step:
    return next_step(material, names, LIFETIMES, now)


def advanced(material: Material, step: Step, now: datetime, names=NAMES) -> Material:
    assert step_at(material, now, names) is step
    return take_step(step, material, names, LIFETIMES, now)


def serving_of(material: Material) -> x509.Certificate:
    return read_certificate(material.serving.chain, "serving")


def is_believed(material: Material, bundle: bytes, now: datetime) -> bool:
    """Whether somebody who trusts the bundle believes what is served."""
    serving = serving_of(material)
    lasting = [one for one in (read_certificate(text, "") for text in split_bundle(bundle, "")) if is_valid(one, now)]
    return is_valid(serving, now) and any(is_signed_by(serving, one) for one in lasting)


def is_valid(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc


def test_out_of_nothing_comes_an_authority_and_a_certificate_that_it_signed():
    assert step_at(None, START) is Step.BEGIN
    material = begun()
    assert is_believed(material, material.bundle, START)
    assert names_of(serving_of(material)) == set(NAMES)
    assert step_at(material, START) is Step.KEEP


def test_a_serving_certificate_is_renewed_after_two_thirds_of_its_life():
    material = begun()
    assert step_at(material, at(59)) is Step.KEEP
    renewed = advanced(material, Step.ISSUE_SERVING, at(60))
    assert renewed.bundle == material.bundle
    assert renewed.serving.key != material.serving.key
    assert step_at(renewed, at(61)) is Step.KEEP


def test_other_names_want_another_certificate_at_once():
    names = ("elsewhere.svc",)
    assert names_of(serving_of(advanced(begun(), Step.ISSUE_SERVING, START, names))) == set(names)


def test_a_new_authority_is_announced_before_anything_is_signed_by_it():
    old = take_step(Step.ISSUE_SERVING, begun(), NAMES, LIFETIMES, at(240))
    announced = advanced(old, Step.ANNOUNCE_AUTHORITY, at(244))
    assert announced.serving == old.serving
    assert announced.authorities[1:] == old.authorities
    assert step_at(announced, at(244)) is Step.KEEP
    assert step_at(announced, at(244) + timedelta(minutes=9)) is Step.KEEP


def test_then_the_new_authority_signs_and_the_old_one_stays_trusted_until_it_ends():
    old = take_step(Step.ISSUE_SERVING, begun(), NAMES, LIFETIMES, at(240))
    announced = take_step(Step.ANNOUNCE_AUTHORITY, old, NAMES, LIFETIMES, at(244))
    signed = advanced(announced, Step.ISSUE_SERVING, at(244) + timedelta(minutes=11))
    assert is_signed_by(serving_of(signed), read_certificate(signed.authorities[0], ""))
    assert signed.authorities == announced.authorities
    renewed = take_step(Step.ISSUE_SERVING, signed, NAMES, LIFETIMES, at(300))
    assert step_at(renewed, at(300)) is Step.KEEP
    renewed = take_step(Step.ISSUE_SERVING, renewed, NAMES, LIFETIMES, at(360))
    alone = advanced(renewed, Step.FORGET_AUTHORITIES, at(366))
    assert alone.authorities == signed.authorities[:1]
    assert step_at(alone, at(366)) is Step.KEEP


def test_who_slept_through_everything_waits_for_nobody():
    announced = advanced(begun(), Step.ANNOUNCE_AUTHORITY, at(1000))
    assert len(announced.authorities) == 1
    served = advanced(announced, Step.ISSUE_SERVING, at(1000))
    assert is_believed(served, served.bundle, at(1000))


def test_a_serving_certificate_does_not_outlive_its_authority():
    material = take_step(Step.ISSUE_SERVING, begun(), NAMES, LIFETIMES, at(330))
    assert serving_of(material).not_valid_after_utc == at(365)


@pytest.mark.parametrize(
    ("every", "first_day", "last_day"),
    [(timedelta(minutes=6), 242, 245), (timedelta(hours=9), 0, 800), (timedelta(days=9), 0, 800)],
)
def test_what_is_served_is_always_believed_by_who_heard_of_the_bundle_a_round_ago(every, first_day, last_day):
    now = at(first_day)
    material = take_step(Step.ISSUE_SERVING, begun(), NAMES, LIFETIMES, now)
    heard, steps = material.bundle, set[Step]()
    while now < at(last_day):
        now += every
        assert is_believed(material, heard, now)
        step = step_at(material, now)
        material = take_step(step, material, NAMES, LIFETIMES, now)
        assert is_believed(material, heard, now)
        heard = material.bundle
        steps.add(step)
    assert {Step.ANNOUNCE_AUTHORITY, Step.ISSUE_SERVING} <= steps


def test_a_certificate_that_no_known_authority_signed_is_replaced_at_once():
    announced = take_step(Step.ANNOUNCE_AUTHORITY, begun(), NAMES, LIFETIMES, START)
    forgetful = Material(
        authorities=announced.authorities[:1], authority_key=announced.authority_key, serving=announced.serving
    )
    assert is_believed(advanced(forgetful, Step.ISSUE_SERVING, START), forgetful.bundle, START)


def test_a_key_that_is_not_the_authority_s_is_refused():
    stranger = begun()
    mixed = Material(authorities=begun().authorities, authority_key=stranger.authority_key, serving=stranger.serving)
    with pytest.raises(InvalidInput, match="the authority's key is another's"):
        take_step(Step.ISSUE_SERVING, mixed, NAMES, LIFETIMES, START)


def test_keys_are_not_shown():
    assert "PRIVATE" not in repr(begun())
