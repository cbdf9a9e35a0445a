"""What fixes must satisfy and what queries select: conditions, filters, values, over whole columns."""
