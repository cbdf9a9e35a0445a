"""Contract to rules to report."""
