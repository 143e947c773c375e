"""What webhooks of old have done for a vendor's pods beside completing their figures.

Users' images and the vendors' libraries count on it. A vendor that is not here has no such habits.
"""

from collections.abc import Mapping

import msgspec

from tessera.model.annotations import metax

NO_ANNOTATIONS: Mapping[str, str] = {}


class Habit(msgspec.Struct, frozen=True, kw_only=True):
    """Names of variables are empty where the vendor has none.

    `hiding_variable` is set to `none` in containers that ask for no card. `states_whole_cores`: who gets a whole card
    has all of its cores written into the limits. `annotations` are written on the pod unless the user did.
    """

    priority_variable: str = ""
    core_policy_variable: str = ""
    hiding_variable: str = ""
    states_whole_cores: bool = False
    annotations: Mapping[str, str] = NO_ANNOTATIONS


NO_HABIT = Habit()
HABITS: Mapping[str, Habit] = {
    "NVIDIA": Habit(
        priority_variable="CUDA_TASK_PRIORITY",
        core_policy_variable="GPU_CORE_UTILIZATION_POLICY",
        hiding_variable="NVIDIA_VISIBLE_DEVICES",
        states_whole_cores=True,
    ),
    "Metax-SGPU": Habit(annotations={metax.QOS_POLICY: metax.QosPolicy.BEST_EFFORT.value}),
}


def habit_of(vendor: str) -> Habit:
    return HABITS.get(vendor, NO_HABIT)
