"""What a container finds when it starts: variables, volumes, names, additions."""

import asyncio
import base64
import os

import pytest

from tessera.embedded.runtime import runtime
from tessera.embedded.runtime.namespaces import Shown
from tessera.embedded.runtime.sources import Additions
from tests.embedded.runtime.node import has_ended, is_ready, is_running, running_node

pytestmark = pytest.mark.asyncio


async def test_variables_come_from_many_places(node):
    node.objects.config_maps["settings"] = {"data": {"COLOUR": "red"}}
    node.objects.secrets["key"] = {"data": {"token": base64.b64encode(b"abc").decode()}}
    env = [
        {"name": "PLAIN", "value": "1"},
        {"name": "REFERENCE", "value": "$(PLAIN)2"},
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "key", "key": "token"}}},
    ]
    container = node.container(
        "echo $PLAIN $REFERENCE $POD $TOKEN $COLOUR $HOSTNAME",
        env=env,
        envFrom=[{"configMapRef": {"name": "settings"}}],
    )
    assert await node.run(container) == "1 12 worker abc red worker\n"


async def test_variables_of_the_engine_are_not_passed_on(node, monkeypatch):
    monkeypatch.setenv("SECRET_OF_THE_ENGINE", "hidden")
    assert await node.run("echo [$SECRET_OF_THE_ENGINE]") == "[]\n"


async def test_config_maps_and_secrets_become_files_at_paths_that_this_machine_does_not_have(node):
    node.objects.config_maps["hosts"] = {"data": {"hostfile": "worker-0 slots=1"}}
    node.objects.secrets["key"] = {"data": {"id": base64.b64encode(b"abc").decode()}}
    mounts = [{"name": "hosts", "mountPath": "/etc/mpi"}, {"name": "key", "mountPath": "/etc/key"}]
    volumes = [
        {"name": "hosts", "configMap": {"name": "hosts"}},
        {"name": "key", "secret": {"secretName": "key", "defaultMode": 0o400}},
    ]
    container = node.container("cat /etc/mpi/hostfile /etc/key/id", volumeMounts=mounts)
    assert await node.run(container, volumes=volumes) == "worker-0 slots=1abc"
    assert not os.path.exists("/etc/mpi")


async def test_a_container_sees_the_rest_of_the_machine_beside_its_volumes(node):
    mounts = [{"name": "own", "mountPath": "/etc/own/deep"}, {"name": "own", "mountPath": "/top/inner"}]
    container = node.container("ls -a / | sort; ls -a /etc | sort", volumeMounts=mounts)
    seen = await node.run(container, volumes=[{"name": "own", "emptyDir": {}}])
    expected = sorted({".", "..", "top", *os.listdir("/")}) + sorted({".", "..", "own", *os.listdir("/etc")})
    assert sorted(seen.split()) == sorted(expected)


async def test_volumes_can_lie_inside_one_another(node):
    mounts = [{"name": "inner", "mountPath": "/outer/inner"}, {"name": "outer", "mountPath": "/outer"}]
    container = node.container("touch /outer/inner/file; ls -R /outer", volumeMounts=mounts)
    volumes = [{"name": name, "emptyDir": {}} for name in ("inner", "outer")]
    assert await node.run(container, volumes=volumes) == "/outer:\ninner\n\n/outer/inner:\nfile\n"


async def test_what_is_mounted_read_only_cannot_be_written(node, tmp_path):
    (tmp_path / "data").mkdir()
    mounts = [{"name": "data", "mountPath": "/data", "readOnly": True}]
    container = node.container("touch /data/file 2>/dev/null || echo refused", volumeMounts=mounts)
    volumes = [{"name": "data", "hostPath": {"path": str(tmp_path / "data")}}]
    assert await node.run(container, volumes=volumes) == "refused\n"


async def test_a_pod_finds_its_token_and_namespace_where_clients_look(node):
    where = "/var/run/secrets/kubernetes.io/serviceaccount"
    sources = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
    ]
    node.objects.config_maps["kube-root-ca.crt"] = {"data": {"ca.crt": "authority\n"}}
    container = node.container(
        f"cat {where}/ca.crt {where}/namespace {where}/token",
        volumeMounts=[{"name": "access", "mountPath": where, "readOnly": True}],
    )
    printed = await node.run(container, volumes=[{"name": "access", "projected": {"sources": sources}}])
    assert printed == "authority\ndefaulttoken of worker for the API for 3607 s"


async def test_files_follow_their_config_map(node):
    node.objects.config_maps["words"] = {"data": {"word": "old"}}
    script = "until [ $(cat /words/word) = new ]; do sleep 0.05; done; echo seen"
    container = node.container(script, volumeMounts=[{"name": "words", "mountPath": "/words"}])
    node.start(container, volumes=[{"name": "words", "configMap": {"name": "words"}}])
    await node.wait(is_running)
    node.objects.config_maps["words"] = {"data": {"word": "new"}}
    await node.wait(has_ended)
    assert await node.log() == "seen\n"


async def test_a_pod_waits_for_a_volume_that_cannot_be_made_and_says_so(node):
    container = node.container("cat /words/word", volumeMounts=[{"name": "words", "mountPath": "/words"}])
    node.start(container, volumes=[{"name": "words", "configMap": {"name": "words"}}])
    await node.until(lambda: "FailedMount" in node.reasons())
    assert node.events[0].message == 'MountVolume.SetUp failed: configmap "words" not found'
    node.objects.config_maps["words"] = {"data": {"word": "there"}}
    await node.wait(has_ended)
    assert await node.log() == "there"


async def test_a_pod_knows_its_own_name_and_those_of_services(tmp_path):
    names = [("127.64.9.9", "web.default.svc.cluster.local web")]
    async with running_node(tmp_path, names=lambda _: names) as node:
        printed = await node.run("hostname; getent hosts web; getent hosts $(hostname) | tr -s ' '; echo $POD_IP")
        host, service, itself, address = printed.splitlines()
        assert host == "worker"
        assert service.split()[0] == "127.64.9.9"
        assert itself == f"{address} worker"


async def test_a_new_name_reaches_a_pod_that_runs(tmp_path):
    names: list[tuple[str, str]] = []
    async with running_node(tmp_path, names=lambda _: names) as node:
        node.start("until getent hosts late; do sleep 0.05; done")
        await node.wait(is_running)
        names.append(("127.64.9.9", "late"))
        node.runtime.refresh_names()
        await node.wait(has_ended)


async def test_what_the_node_adds_reaches_the_container(tmp_path):
    (tmp_path / "tile").mkdir()
    (tmp_path / "tile" / "limits").write_text("version 1\n")

    async def prepare(pod, container):
        mounts = (Shown(str(tmp_path / "tile"), "/etc/tessera/nvidia", True),)
        return Additions(environment={"CARDS": f"{pod['metadata']['name']} {container}"}, mounts=mounts)

    async with running_node(tmp_path / "runtime", prepare=prepare) as node:
        assert await node.run("echo $CARDS; cat /etc/tessera/nvidia/limits") == "worker main\nversion 1\n"


async def test_a_server_is_reached_at_its_pods_address(node):
    serve = "import http.server as s, os; s.HTTPServer((os.environ['POD_IP'], 18181), s.SimpleHTTPRequestHandler)"
    serve += ".serve_forever()"
    probe = {"httpGet": {"path": "/", "port": 18181}, "periodSeconds": 0.1}
    for name in ("one", "two"):
        server = {"name": "main", "image": "x", "command": ["python3", "-c", serve], "readinessProbe": probe}
        node.start(server, name=name)
    addresses = {(await node.wait(is_ready, name=name))["podIP"] for name in ("one", "two")}
    assert len(addresses) == 2
    for address in addresses:
        _, writer = await asyncio.open_connection(address, 18181)
        writer.close()


async def test_a_container_that_takes_too_much_memory_is_killed_for_it(node):
    if not node.runtime.limits_memory:
        pytest.skip("this machine lets us make no control group for memory")
    greedy = node.container("python3 -c 'bytearray(300 << 20)'", resources={"limits": {"memory": "64Mi"}})
    node.start(greedy)
    status = await node.wait(has_ended)
    assert status["containerStatuses"][0]["state"]["terminated"]["reason"] == "OOMKilled"


async def test_a_missing_working_directory_is_made_for_the_container_alone(node):
    assert await node.run(node.container("pwd; touch x; ls", workingDir="/opt/none/here")) == "/opt/none/here\nx\n"
    assert not os.path.exists("/opt/none")


async def test_without_mount_namespaces_an_event_says_which_paths_cannot_be_had(tmp_path, monkeypatch):
    monkeypatch.setattr(runtime, "_can_show_mounts", forbidden)
    async with running_node(tmp_path) as node:
        script = "[ -e /data ] || echo absent; touch $TESSERA_VIEW/data/file; ls $TESSERA_VIEW/data"
        container = node.container(script, volumeMounts=[{"name": "data", "mountPath": "/data"}])
        assert await node.run(container, volumes=[{"name": "data", "emptyDir": {}}]) == "absent\nfile\n"
        told = next(event for event in node.events if event.reason == "MountUnavailable")
        assert told.message.startswith("/data cannot be mounted")


async def forbidden(*_):
    return False
