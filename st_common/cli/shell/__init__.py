"""`fairway shell`: statements at a prompt, with completion and history, and changes shown as they come."""
