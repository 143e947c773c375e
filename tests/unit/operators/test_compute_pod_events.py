"""What others say of a pod in events alone."""

from tessera.operators.compute_pod_events import find_volume_trouble, is_node_coming
from tests.unit.operators.compute_making import NOW, told

NO_SECRET = 'MountVolume.SetUp failed for volume "tls" : secret "cert" not found'
NO_CLAIM = 'AttachVolume.Attach failed for volume "pvc-1" : timed out'
IN_SUM = "Unable to attach or mount volumes: unmounted volumes=[tls], unattached volumes=[tls]: timed out"


def trouble_of(*events):
    return find_volume_trouble(events, "cert", NOW)


def test_a_volume_that_fails_is_told_in_the_kubelets_words():
    assert trouble_of(told("FailedAttachVolume", NO_CLAIM, after_s=-9)) == ("VolumeFailed", NO_CLAIM, False)
    assert trouble_of(told("Scheduled", "all is well")) is None


def test_a_certificate_that_is_not_there_is_called_so():
    trouble = trouble_of(told("FailedMount", NO_SECRET, after_s=-9))
    assert trouble is not None
    assert trouble.reason == "TlsSecretMissing"
    assert "spec.tls.secretName" in trouble.message
    other = find_volume_trouble([told("FailedMount", NO_SECRET, after_s=-9)], "another", NOW)
    assert other is not None
    assert other.reason == "VolumeFailed"


def test_the_reason_is_told_and_not_the_sum():
    trouble = trouble_of(told("FailedMount", NO_SECRET, after_s=-90), told("FailedMount", IN_SUM, after_s=-1))
    assert trouble is not None
    assert trouble.reason == "TlsSecretMissing"


def test_what_was_said_long_ago_does_not_count():
    assert trouble_of(told("FailedMount", NO_SECRET, after_s=-600)) is None
    assert is_node_coming([told("TriggeredScaleUp", after_s=-600)], NOW)
    assert not is_node_coming([told("TriggeredScaleUp", after_s=-1000)], NOW)
    assert not is_node_coming([told("NotTriggerScaleUp", after_s=-10)], NOW)
