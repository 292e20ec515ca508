"""The rules of the Remote Update Protocol (Internet-Draft of January 1998). All modules here are pure.

From the bottom: ``units`` (``30-day``) and ``wire`` (decoding of received text); ``info`` (``/rupinfo.txt``),
``report`` (a list of changes), ``forms`` (requests of a robot), ``patterns`` (the paths that it wants) and ``answers``;
``mail`` (a report as a mail, cut by ``multipart``); ``server`` (the answers of a server, and when a report is due) and
``subscription`` (the robot's registration, and its conclusions from mail, a gap or silence).

The modules read liberally and write exactly. No reader raises, and every reader has bounds.
"""
