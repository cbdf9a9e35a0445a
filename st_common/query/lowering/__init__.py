"""From the tree of a SELECT to a plan, clause by clause. What a plan cannot say is refused where it stands."""
