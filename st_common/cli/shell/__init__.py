"""`fairway shell`: statements at a prompt, with completion and history, and changes shown as they come.

Statements are carried out as `fairway query` does; nothing is known here of what they mean. Begin with `command`, then
`carrying_out`.
"""
