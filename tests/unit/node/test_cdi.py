"""What the container runtime is told about a tile."""

from tessera.node.cdi import cdi_document
from tessera.vendors.rendering import ContainerEdits, Mount


def test_a_tile_is_one_device_with_environment_device_files_and_mounts():
    edits = ContainerEdits(
        environment={"A": "1", "B": "x=y"},
        mounts=(Mount("/in", "/out", True), Mount("/in2", "/out2", False)),
        device_paths=("/dev/one",),
    )
    assert cdi_document("12ab", edits) == {
        "cdiVersion": "0.6.0",
        "kind": "tessera.io/tile",
        "devices": [
            {
                "name": "12ab",
                "containerEdits": {
                    "env": ["TESSERA_TILE=12ab", "A=1", "B=x=y"],
                    "deviceNodes": [{"path": "/dev/one", "permissions": "rw"}],
                    "mounts": [
                        {"hostPath": "/out", "containerPath": "/in", "options": ["ro", "nosuid", "nodev", "rbind"]},
                        {"hostPath": "/out2", "containerPath": "/in2", "options": ["rw", "nosuid", "nodev", "rbind"]},
                    ],
                },
            }
        ],
    }


def test_what_a_tile_does_not_have_is_not_mentioned_and_something_always_is():
    (device,) = cdi_document("12ab", ContainerEdits())["devices"]
    assert device["containerEdits"] == {"env": ["TESSERA_TILE=12ab"]}, "runtimes refuse a device that changes nothing"
