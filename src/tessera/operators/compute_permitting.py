"""What a Compute may not have here, however well it is spelt. Pure."""

from pathlib import PurePosixPath

from tessera.operators.compute_children import ComputeSettings
from tessera.operators.compute_objects import Compute
from tessera.operators.compute_pods import Trouble


def find_unpermitted(compute: Compute, settings: ComputeSettings) -> Trouble | None:
    shared = compute.spec.shared_memory
    if shared is None:
        return None
    if shared.claim_name and not settings.has_claims:
        message = (
            f'spec.sharedMemory.claimName is "{shared.claim_name}", and this engine has no PersistentVolumeClaims; '
            "give a hostPath, or nothing: on one machine shared memory needs no directory"
        )
        return Trouble("ClaimsNotSupported", message, is_final=True)
    if shared.host_path and not any(_is_below(shared.host_path, one) for one in settings.host_paths):
        allowed = " or ".join(settings.host_paths) or "none at all"
        message = (
            f'spec.sharedMemory.hostPath is "{shared.host_path}", expected a directory below {allowed}; '
            "give another, or have the operator allow this one"
        )
        return Trouble("HostPathNotAllowed", message, is_final=True)
    return None


def _is_below(path: str, directory: str) -> bool:
    """By its words: a path with dots in it is below nothing."""
    return ".." not in path.split("/") and PurePosixPath(path).is_relative_to(directory)
