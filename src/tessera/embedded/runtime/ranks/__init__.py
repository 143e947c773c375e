"""How ranks of an MPIJob get into worker pods on this machine, where no sshd runs and none is needed.

mpirun calls `agent` as it would call ssh. `host` runs in each worker, and starts what the agent brings as a child of
its own: so a rank has the worker's environment, namespaces, control group and cards, and ends with the worker's pod.
They meet at an abstract Unix socket, prove to each other that they know the job's token, and the agent hands over its
own standard input and output. Nothing is copied between them, and no rank waits for anybody to pass its output on.

These modules run in processes of their own, and import the standard library and `tessera.model.mpi_hosts` only.
"""
