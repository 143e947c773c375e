"""A terminal in a container, as people use one: many lines, each answered, in the engine as it runs for them."""

from contextlib import closing, contextmanager

from kubernetes import client, config
from kubernetes.stream import stream

from tests.up.making import gpu_pod, wait_for

LINES = 20
PATIENCE_S = 10


def test_what_is_typed_is_carried_out_and_all_that_a_terminal_shows_is_seen(engine, pods):
    pods.create(gpu_pod("shell"))
    wait_for(pods, "shell", lambda pod: pod["status"]["phase"] == "Running")
    shown = ""
    with open_shell(engine.kubeconfig, "shell") as shell:
        for number in range(LINES):
            shell.write_stdin(f"echo n$((1000+{number}))\n")
            while f"n{1000 + number}\r\n" not in shown:
                more = shell.read_stdout(timeout=PATIENCE_S)
                assert more, f"after {number} lines the terminal showed no more: {shown}"
                shown += more
        shell.write_stdin("echo [$TERM]; exit 3\n")
        shell.run_forever(timeout=PATIENCE_S)
        assert "[xterm]\r\n" in shell.read_stdout()
        assert shell.returncode == 3


@contextmanager
def open_shell(kubeconfig, pod):
    streams = {"stdin": True, "stdout": True, "stderr": False, "tty": True}
    with config.new_client_from_config(str(kubeconfig)) as connection:
        connect = client.CoreV1Api(connection).connect_get_namespaced_pod_exec
        session = stream(connect, pod, "default", command=["sh"], **streams, _preload_content=False)
        with closing(session):
            yield session
            session.sock.shutdown()
