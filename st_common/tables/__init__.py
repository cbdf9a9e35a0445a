"""Delta tables without a JVM: create, append once, read."""
