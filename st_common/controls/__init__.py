"""Control rows: what stands in a log beside records. Their kinds, the one writer of them, and the one reader."""
