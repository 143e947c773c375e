"""A GPU in the cluster that you talk to in tensors.

```python
async with Compute(name="my-compute") as compute:
    await compute.send_tensors(tensor)
```
"""

from kpu.client.benchmark import Benchmark
from kpu.client.cluster import NoCluster, init
from kpu.client.compute import Compute, SharedComputeWarning
from kpu.client.models import (
    KpuV1alpha1Address,
    KpuV1alpha1Compute,
    KpuV1alpha1ComputeSpec,
    KpuV1alpha1ComputeStatus,
    KpuV1Condition,
    KpuV1ObjectMeta,
)
from kpu.client.tensor_client import TensorClient
from kpu.client.transfers import TransferStats
from kpu.errors import (
    ComputeDeleted,
    ComputeFailed,
    InvalidCompute,
    InvalidRequest,
    KpuError,
    MalformedMessage,
    NotReady,
    ReadyTimeout,
    ServerGone,
    Suspended,
    TooLarge,
    TransferFailed,
    TransferTimeout,
    Unauthenticated,
    Unreachable,
    UnsupportedTensor,
)
from kpu.sharing.emptying import empty
from kpu.wire.messages import TensorResponse

__all__ = [
    "Benchmark",
    "Compute",
    "ComputeDeleted",
    "ComputeFailed",
    "InvalidCompute",
    "InvalidRequest",
    "KpuError",
    "KpuV1Condition",
    "KpuV1ObjectMeta",
    "KpuV1alpha1Address",
    "KpuV1alpha1Compute",
    "KpuV1alpha1ComputeSpec",
    "KpuV1alpha1ComputeStatus",
    "MalformedMessage",
    "NoCluster",
    "NotReady",
    "ReadyTimeout",
    "ServerGone",
    "SharedComputeWarning",
    "Suspended",
    "TensorClient",
    "TensorResponse",
    "TooLarge",
    "TransferFailed",
    "TransferStats",
    "TransferTimeout",
    "Unauthenticated",
    "Unreachable",
    "UnsupportedTensor",
    "empty",
    "init",
]
