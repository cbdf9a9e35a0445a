"""One command-line program per job."""
