"""What a page says: its directives, its names for itself, its links. All of it is pure.

The ideas:

* **A page is asked once.** :func:`~crawler.page.html.read_page` takes a body and its headers and returns everything
  that is stored or decided: may it be indexed, may its links be followed, what is it called, where does it lead.
* **What is said is not what is meant.** Tags and headers are first gathered as written, then read together in the
  chosen reading, for several of them add up and may contradict each other. Only the first needs the parser's tree.
* **Links are resolved once per target**, which is what makes reading a page cheap.
* **The parser is guarded.** A page that could tie it up is told by cheap counts, for the shell to read it where it can
  be killed; one that had to be killed is taken for one that forbids everything.

From the bottom: ``guard`` (is it light) · ``charset`` (bytes to UTF-8) · ``links`` → ``tags`` (what is said) ·
``directives`` (the terms) · ``targets`` (where links lead) → ``html`` (all of it together) → ``check``, for trying it
without network.
"""
