"""The data appendix of a study: a folder with all that a reader needs to judge it, and to repeat it (docs/appendix.md).

``study`` is what its authors say. ``tables`` lists the tables, ``describe``, ``documents`` and ``recipes`` make the
files about them, and ``write`` writes the folder from a store. ``check`` checks a folder, with nothing but the folder.
``commands`` carries out `crawler export appendix` and `crawler audit`.
"""
