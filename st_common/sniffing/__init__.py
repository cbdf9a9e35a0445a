"""What a file or a feed is: its format, columns, unit of time and system, guessed from its first records."""
