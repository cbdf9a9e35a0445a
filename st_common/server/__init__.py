"""HTTP in and out (SPEC S8): fixes, queries, answers, changes as they happen, features; what the page asks.

An endpoint (`endpoint`) is declared at the function that answers it, which gets what a request asks
(`parameters`) and asks the library; what takes long is answered by `worker_processes`. Fixes and changes are answered
in the event loop (`intake`, `changes`; `app` wires them). Nothing is computed here, and no file of a stream is written
but its log. Begin with `queries`, then `app`.
"""
