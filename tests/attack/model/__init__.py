"""jobq's protocol as a state machine that can be searched whole (DESIGN.md, Lease, fence, rescue).

Every step is one of the statements of jobq/statements, or a fault; each docstring says which. What PostgreSQL's row
locks make one thing is one step here: a claim waits for a rescue that has its worker's row, and the other way round.
"""
