"""``crawler run`` and what steers a run (docs/running.md).

``commands`` calls ``execution``, which begins a ``session``, shows it (``live_display``, ``minute_log``) and tells its
end (``notify``). ``team`` starts and watches workers (``worker_process``, ``worker``). ``plan`` tells the cost
beforehand, ``refresh`` queues visits again; ``hints`` and ``control`` steer it.
"""
