"""The annotation keys that belong to no vendor. What a vendor calls its own is in the vendor catalogue."""

# Pods, written at bind
DEVICES_TO_ALLOCATE = "hami.io/devices-to-allocate"
SCHEDULING_RESULT = "hami.io/scheduling-result"
DEVICE_ALLOCATED = "hami.io/device-allocated"
VGPU_NODE = "hami.io/vgpu-node"
VGPU_TIME = "hami.io/vgpu-time"
BIND_PHASE = "hami.io/bind-phase"
BIND_TIME = "hami.io/bind-time"
FENCED_AT = "tessera.io/fenced-at"  # what was decided on the pod before then can no longer land
WOKEN_AT = "tessera.io/woken-at"
MIG_ALLOCATIONS = "hami.io/vgpu-mig-allocations"
ALLOCATION = "tessera.io/allocation"
CLAIMED = "gpu.scheduling/devices"  # the cards of a claim, as `hami.io/devices-to-allocate` lists cards
VISIBLE_DEVICES = "gpu.scheduling/visible-devices"  # the same as CUDA_VISIBLE_DEVICES takes them

# Pods, written by users
NODE_POLICY = "hami.io/node-scheduler-policy"
CARD_POLICY = "hami.io/gpu-scheduler-policy"
SCORING_WEIGHTS = "hami.io/device-scoring-weights"
CLAIM = "gpu.scheduling/claim"  # also the resource that every container of such a pod asks for
PIN = "gpu.scheduling/allocated"  # a wish in a new pod, an allocation once the scheduler has written it
GANG = "gpu.scheduling/gang"  # also the resource by which we are asked about members that want no card
GANG_SIZE = "gpu.scheduling/gang-size"

# Nodes
NODE_LOCKS = ("hami.io/mutex.lock", "volcano.sh/mutex.lock", "cambricon.com/dsmlu.lock")
DEVICE_CORDON = "hami.io/device-cordon"
SOFT_VNPU = "hami-vnpu-core"
INVENTORY = "tessera.io/inventory"
LIMITS_HELD = "TesseraLimitsHeld"  # a condition of a Node; False where containers are not kept within their limits
LATE_BINDING = "TesseraLateBinding"  # a condition of a Node; False where containers cannot be told late what they get

# Volcano's own protocol, read only
VOLCANO_NODE = "volcano.sh/vgpu-node"
VOLCANO_TIME = "volcano.sh/vgpu-time"
VOLCANO_BIND_PHASE = "volcano.sh/bind-phase"
VOLCANO_BIND_TIME = "volcano.sh/bind-time"

# Leases of cards that are claimed
CARD_LEASE = "gpu.scheduling/managed"  # a label
CARD_NODE = "gpu.scheduling/node"
CARD_UUID = "gpu.scheduling/uuid"
CARD_POD = "gpu.scheduling/pod"  # namespace/name of the holder
CARD_PODS = "gpu.scheduling/pods"  # UIDs, where several share the card

# Leases of node agents
AGENT_LABEL = "tessera.io/agent"
AGENT_NODE = "tessera.io/node"
ENDED = "tessera.io/ended"  # UIDs of the pods whose containers are gone, the latest of them
