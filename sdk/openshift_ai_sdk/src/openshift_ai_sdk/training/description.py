"""What a job is to be: its settings, its YAML, and how it looks. No cluster is needed for any of it."""

from collections.abc import Mapping
from typing import Any, Optional, TypeVar

from . import manifests, validation
from .documents import API_VERSION, KIND, Document
from .lives import Birth
from .notebook import job_table
from .resources import ResourceRequirements
from .settings import SETTINGS
from .statuses import Status, judge_conditions
from .yaml_text import dump_document, load_document

Self = TypeVar("Self", bound="JobDescription")


class JobDescription:
    """The part of an MPIJob that both of its kinds, the one that blocks and the one that is awaited, have in common."""

    def __init__(
        self,
        name: str,
        namespace: str = "default",
        workers: int = 2,
        image: Optional[str] = None,
        command: Optional[list[str]] = None,
        args: Optional[list[str]] = None,
        resources: Optional[ResourceRequirements] = None,
        volume_mounts: Optional[list[dict[str, Any]]] = None,
        volumes: Optional[list[dict[str, Any]]] = None,
        env: Optional[dict[str, str]] = None,
        node_selector: Optional[dict[str, str]] = None,
        affinity: Optional[dict[str, Any]] = None,
        tolerations: Optional[list[dict[str, Any]]] = None,
        slots_per_worker: int = 1,
        clean_pod_policy: str = "Running",
        active_deadline_seconds: Optional[int] = None,
        backoff_limit: int = 6,
        ttl_seconds_after_finished: Optional[int] = None,
        *,
        labels: Optional[dict[str, str]] = None,
        annotations: Optional[dict[str, str]] = None,
    ) -> None:
        """Describe a job; nothing is sent anywhere.

        Args:
            name: of the job: at most 63 lower-case letters, digits, hyphens and dots
            namespace: where it is to be
            workers: how many worker pods, 2 to 100
            image: with MPI in it; the launcher and all workers run it
            command: what the launcher runs, such as ["mpirun", "-np", "4", "python", "train.py"]
            args: what the command is given
            resources: what each worker gets; the launcher gets no GPU, at most 1 CPU and 4Gi
            volume_mounts: as in a container, for the launcher and all workers
            volumes: as in a pod's spec
            env: variables of the launcher and all workers
            node_selector: labels of the nodes that may run it
            affinity: as in a pod's spec
            tolerations: as in a pod's spec
            slots_per_worker: how many ranks a worker takes, 1 to 8
            clean_pod_policy: which workers go when the job ends: "Running", "All" or "None"
            active_deadline_seconds: after which a job that still runs is ended
            backoff_limit: how often a launcher that failed is tried again
            ttl_seconds_after_finished: after which the launcher and its log go
            labels: of the MPIJob itself
            annotations: of the MPIJob itself

        Raises:
            ValueError: if a value is not as it should be
        """
        self.name = name
        self.namespace = namespace
        self.workers = workers
        self.image = image
        self.command = command
        self.args = args
        self.resources = resources
        self.volume_mounts = volume_mounts
        self.volumes = volumes
        self.env = env
        self.node_selector = node_selector
        self.affinity = affinity
        self.tolerations = tolerations
        self.slots_per_worker = slots_per_worker
        self.clean_pod_policy = clean_pod_policy
        self.active_deadline_seconds = active_deadline_seconds
        self.backoff_limit = backoff_limit
        self.ttl_seconds_after_finished = ttl_seconds_after_finished
        self.labels = labels
        self.annotations = annotations
        self._source: Optional[Document] = None
        self._read: Mapping[str, Any] = {}
        self._status: Optional[Status] = None
        self._birth: Optional[Birth] = None
        validation.check_values(self._values())

    def to_yaml(self) -> str:
        """The configuration as YAML that kubectl takes too, without status and what the server adds.

        Raises:
            ValueError: if the configuration is invalid
        """
        document = self._build_manifest()
        if self._source is None:
            validation.check_image(document)
        return dump_document(document)

    @classmethod
    def from_yaml(cls: type[Self], yaml_str: str) -> Self:
        """A job from YAML, whoever wrote it. What this class does not know stays in it, and goes along with `create()`.

        Raises:
            ValueError: if the text is not YAML, or no MPIJob of kubeflow.org/v2beta1
        """
        document = load_document(yaml_str)
        manifests.check_kind(document)
        return cls._from_document(document)

    def to_dict(self) -> Document:
        """The manifest that `create()` sends."""
        return self._build_manifest()

    @property
    def status_detail(self) -> str:
        """What is behind the status that was last seen, such as "Suspended: MPIJob suspended"; empty before any was."""
        return self._status.detail if self._status is not None else ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r}, namespace={self.namespace!r}, workers={self.workers!r})"

    def _repr_html_(self) -> str:
        return job_table(self._values(), self._status)

    def _build_manifest(self) -> Document:
        values = self._values()
        if self._source is not None:
            validation.check_changes(manifests.changes(self._read, values))
            return manifests.changed_document(self._source, self._read, values)
        validation.check_values(values)
        return manifests.new_document(values)

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in SETTINGS}

    @classmethod
    def _from_document(cls: type[Self], document: Mapping[str, Any]) -> Self:
        """As it is, however odd: somebody else may have made it."""
        job = cls.__new__(cls)
        source: Document = {"apiVersion": API_VERSION, "kind": KIND, **document}
        job._source = source
        job._read = manifests.read_settings(source)
        job._status = judge_conditions(source)
        job._birth = None
        for name, value in manifests.read_settings(source).items():
            setattr(job, name, value)
        return job
