"""HTTP in and out (SPEC S8): fixes, queries, answers, changes as they happen, features; what the page asks.

An endpoint (`endpoint`) is declared at the function that answers it, which gets a request (`asked`) and asks the
library; what takes long is answered in processes of their own (`apart`). Begin with `queries`, then `app`.
"""
