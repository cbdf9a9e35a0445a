"""HTTP in and out (SPEC S8): fixes, queries, answers, changes as they happen, features; what the page asks.

An endpoint is declared in `endpoints` and answered by a function that gets a request (`asked`) and asks the library;
what takes long is answered in processes of their own (`apart`). Begin with `endpoints`, then `app`.
"""
