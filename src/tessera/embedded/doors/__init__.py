"""Ways into what runs: logs, commands, ports, pages, and the addresses and names of Services.

The API server knows objects and the runtime knows processes; here a request about the first is answered by the second.
What travels over a connection is read and written by pure code (`channels`, `spdy`, `pages`); who stands behind a
Service is decided by pure code (`backends`). `connecting` is what the server is given, `service_fronts` runs beside it.
"""
