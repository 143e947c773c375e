import asyncio
import base64
import stat

import pytest

from tessera.embedded.runtime.fields import Place
from tessera.embedded.runtime.hosts import hosts_text
from tessera.embedded.runtime.namespaces import Shown
from tessera.embedded.runtime.views import lay_out
from tessera.embedded.runtime.volumes import Volumes
from tessera.errors import StartRefused

PLACE = Place(node="node-a", host_address="127.0.0.1", pod_address="127.64.0.1")
CONFIG = {"name": "v", "configMap": {"name": "c"}}


class Objects:
    def __init__(self):
        self.data = {"a": "1", "b": "2"}

    async def config_map(self, namespace, name):
        return {"data": self.data} if (namespace, name) == ("team", "c") else None

    async def secret(self, namespace, name):
        return {"data": {"k": base64.b64encode(b"\xff\x00").decode()}} if (namespace, name) == ("team", "s") else None

    async def token(self, pod, audience, expires_s):
        return f"{pod['metadata']['name']}/{audience}/{expires_s}"


@pytest.fixture
def objects():
    return Objects()


@pytest.fixture
def make(tmp_path, objects):
    def make(*volumes):
        metadata = {"name": "web", "namespace": "team", "labels": {"app": "web"}}
        spec = {"volumes": list(volumes), "containers": [{"name": "main", "resources": {"limits": {"cpu": "2"}}}]}
        made = Volumes({"metadata": metadata, "spec": spec}, tmp_path / "volumes", objects, PLACE)
        asyncio.run(made.make())
        return made

    return make


def files(tmp_path):
    root = tmp_path / "volumes" / "v"
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_config_map_is_a_file_for_each_key(make, tmp_path):
    make(CONFIG)
    assert files(tmp_path) == {"a": b"1", "b": b"2"}


def test_keys_can_be_chosen_and_put_elsewhere_with_modes(make, tmp_path):
    make({"name": "v", "configMap": {"name": "c", "items": [{"key": "b", "path": "deep/er", "mode": 0o400}]}})
    assert files(tmp_path) == {"deep/er": b"2"}
    assert stat.S_IMODE((tmp_path / "volumes/v/deep/er").stat().st_mode) == 0o400


def test_a_secret_may_hold_any_bytes(make, tmp_path):
    make({"name": "v", "secret": {"secretName": "s", "defaultMode": 0o440}})
    assert files(tmp_path) == {"k": b"\xff\x00"}
    assert stat.S_IMODE((tmp_path / "volumes/v/k").stat().st_mode) == 0o440


def test_a_projected_volume_joins_its_sources(make, tmp_path):
    cpu = {"containerName": "main", "resource": "limits.cpu"}
    fields = [
        {"path": "app", "fieldRef": {"fieldPath": "metadata.labels['app']"}},
        {"path": "cpu", "resourceFieldRef": cpu},
    ]
    sources = [
        {"serviceAccountToken": {"path": "token", "audience": "us", "expirationSeconds": 600}},
        {"configMap": {"name": "c"}},
        {"downwardAPI": {"items": fields}},
        {"secret": {"name": "none", "optional": True}},
    ]
    make({"name": "v", "projected": {"sources": sources}})
    assert files(tmp_path) == {"token": b"web/us/600", "a": b"1", "b": b"2", "app": b"web", "cpu": b"2"}


def test_a_key_that_went_away_goes_from_the_volume(make, objects, tmp_path):
    volumes = make(CONFIG)
    objects.data = {"b": "3"}
    asyncio.run(volumes.make())
    assert files(tmp_path) == {"b": b"3"}


@pytest.mark.parametrize(
    ("volume", "sentence"),
    [
        ({"configMap": {"name": "none"}}, 'configmap "none" not found'),
        ({"configMap": {"name": "c", "items": [{"key": "z", "path": "z"}]}}, "references non-existent config key: z"),
        (
            {"configMap": {"name": "c", "items": [{"key": "a", "path": "../a"}]}},
            r'path is "\.\./a", expected one below',
        ),
        ({"hostPath": {"path": "/none", "type": "Directory"}}, "/none is not a directory of this machine"),
        ({"persistentVolumeClaim": {"claimName": "x"}}, 'volume "v" is persistentVolumeClaim, expected emptyDir'),
    ],
)
def test_a_volume_that_cannot_be_made_says_why(make, volume, sentence):
    with pytest.raises(StartRefused, match=sentence):
        make({"name": "v", **volume})


def test_a_part_of_a_volume_can_be_mounted(make, tmp_path):
    volumes = make({"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "c"}})
    mounts = [
        {"name": "v", "mountPath": "/one", "subPath": "inner"},
        {"name": "v", "mountPath": "/two", "subPathExpr": "of-$(POD)"},
        {"name": "w", "mountPath": "/three"},
    ]
    shown = volumes.mounts_of({"volumeMounts": mounts}, {"POD": "web"})
    root = tmp_path / "volumes"
    assert shown == [
        Shown(str(root / "v/inner"), "/one", False),
        Shown(str(root / "v/of-web"), "/two", False),
        Shown(str(root / "w"), "/three", True),
    ]
    assert (root / "v/inner").is_dir()


def test_a_mount_of_no_volume_is_refused(make):
    with pytest.raises(StartRefused, match='volumeMounts names "none"'):
        make().mounts_of({"volumeMounts": [{"name": "none", "mountPath": "/x"}]}, {})


def test_without_namespaces_a_view_has_every_mount_path(tmp_path):
    (tmp_path / "outer").mkdir()
    (tmp_path / "same").mkdir()
    mounts = [
        Shown(str(tmp_path / "outer"), "/data"),
        Shown(str(tmp_path / "same"), str(tmp_path / "same")),
        Shown(str(tmp_path), "/data/inner"),
    ]
    assert lay_out(tmp_path / "view", mounts) == ["/data", "/data/inner"]
    assert (tmp_path / "view/data").resolve() == tmp_path / "outer"
    assert list((tmp_path / "outer").iterdir()) == []


def test_the_hosts_file_has_the_pod_its_aliases_and_the_names_of_the_cluster():
    metadata = {"name": "worker-0", "namespace": "team"}
    spec = {"subdomain": "job", "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["db", "db.example"]}]}
    text = hosts_text({"metadata": metadata, "spec": spec}, "127.64.0.1", [("127.64.0.9", "web.team.svc")])
    assert text.splitlines()[2:] == [
        "127.64.0.1\tworker-0.job.team.svc.cluster.local\tworker-0",
        "10.0.0.1\tdb db.example",
        "127.64.0.9\tweb.team.svc",
    ]
