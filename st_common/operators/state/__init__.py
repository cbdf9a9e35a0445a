"""What a shard remembers between batches, and how it is stored, changed and compared; it names no operator."""
