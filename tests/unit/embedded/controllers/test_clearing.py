"""How long a pod bears the taints of its node."""

import pytest

from tessera.embedded.controllers.clearing import borne_for_s
from tessera.embedded.controllers.objects import Metadata
from tessera.embedded.controllers.pods import Pod, Spec

TAINT = {"key": "repair", "value": "now", "effect": "NoExecute"}
OTHER = {"key": "other", "effect": "NoExecute"}
BEARS = {"key": "repair", "operator": "Equal", "value": "now"}
EVERYTHING = {"operator": "Exists"}


@pytest.mark.parametrize(
    ("taints", "tolerations", "allowed_s"),
    [
        ([TAINT], [], 0.0),
        ([TAINT], [BEARS], None),
        ([TAINT], [BEARS | {"value": "later"}], 0.0),
        ([TAINT], [BEARS | {"effect": "NoSchedule"}], 0.0),
        ([TAINT], [BEARS | {"tolerationSeconds": 30}], 30.0),
        ([TAINT], [BEARS | {"tolerationSeconds": -1}], 0.0),
        ([TAINT, OTHER], [BEARS], 0.0),
        ([TAINT, OTHER], [EVERYTHING], None),
        ([TAINT, OTHER], [EVERYTHING, BEARS | {"tolerationSeconds": 30}], 30.0),
    ],
    ids=["none", "for-ever", "value", "effect", "a-while", "negative", "one-of-two", "everything", "the-shortest"],
)
def test_a_pod_stays_as_long_as_it_bears_every_taint(taints, tolerations, allowed_s):
    pod = Pod(metadata=Metadata(name="worker"), spec=Spec(tolerations=tuple(tolerations)))
    assert borne_for_s(pod, taints) == allowed_s
