"""A world in a test: whole crawls on a drawn web, with drawn disturbances, on virtual time.

``python -m tests.world --seed N`` runs a world with the real engine and the real SQLite store. All chance comes from
the seed, so a failing world replays exactly.

* :mod:`tests.world.web` draws the web: each host lazily, from the seed and the number of the host.
* :mod:`tests.world.disk` executes the statements of SQLite on virtual time, and fails as told.
* :mod:`tests.world.plan` draws the disturbances: kills, stalls, full disks, orders of the operator, jumps of the clock.
* :mod:`tests.world.process` runs the processes of the crawler, one life after the other or several at a time.
* :mod:`tests.world.witness` checks every request when it is sent. It knows nothing of the engine.
* :mod:`tests.world.oracle` knows the end of every URL of a world without disturbances.
* :mod:`tests.world.worlds` runs one world, judges it, and shrinks one that fails.
"""
