"""The local engine: folds the stages over a log in this process."""
