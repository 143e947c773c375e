"""A server that says it serves, and nothing else: the health service of gRPC, where Computes expect it.

KPU_HOST and KPU_PORT say where it listens; KPU_HEALTH is what it answers, 1 for serving.
"""

import os
import signal
import threading
from concurrent import futures

import grpc


class Health(grpc.GenericRpcHandler):
    def service(self, handler_call_details):
        if handler_call_details.method != "/grpc.health.v1.Health/Check":
            return None
        answer = bytes([0x08, int(os.environ.get("KPU_HEALTH", "1"))])
        return grpc.unary_unary_rpc_method_handler(lambda _request, _context: answer)


def main() -> None:
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=2), handlers=[Health()])
    address = f"{os.environ.get('KPU_HOST', '[::]')}:{os.environ.get('KPU_PORT', '50051')}"
    server.add_insecure_port(address)
    server.start()
    print(f"listening on {address}", flush=True)
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    over.wait()
    server.stop(0)


if __name__ == "__main__":
    main()
