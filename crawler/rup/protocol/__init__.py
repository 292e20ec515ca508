"""The Remote Update Protocol (Internet-Draft of January 1998): a site tells robots what changed. All of it is pure.

From the bottom: ``units`` (30-day), ``wire`` (texts of strangers) → ``info`` (rupinfo.txt), ``report`` (what changed),
``forms`` (what a robot asks), ``answers`` → ``mail`` (a report in MIME) → ``server`` (what a server answers and when a
report is due), ``robot`` (what follows from a report, a gap, silence). Liberal in what is read, exact in what is
written; nothing that is read raises, and everything has a bound.
"""
