"""What a store holds, and what was decided (docs/running.md, docs/seeds.md).

``status`` and ``why`` read the facts, make the JSON and print the text of the commands with their names; ``seeds`` is
the ledger of the seeds. ``time_left``, ``revisits``, ``sampling_frame``, ``last_run``, ``refusing``, ``first_match``
and ``unknown_hosts`` read one kind of fact each, for these, the end of a run and the dashboard.
"""
