"""Which pod gets which cards, carried out: the ledger's one writer, and how kube-scheduler asks it.

Decisions are `engine`'s; here they are fed by watches, offered to kube-scheduler as an extender, and written to the API
in one Binding. What a pod or a node looks like is `model`, what talks HTTP to the API server is `kube`.
"""
