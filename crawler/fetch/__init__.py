"""HTTP: takes one request, and returns one :data:`crawler.model.FetchResult`.

A failure of a server or the network is data, never an exception. The headers, bytes and time of every answer are
bounded. Redirects are reported and not followed, because robots.txt, scope and the address guard must be checked again
at each hop. A request is sent exactly once, so the request log is complete.

- :mod:`crawler.fetch.client` sends requests and reads answers;
- :mod:`crawler.fetch.session` writes a request to a connection, and waits for the header section of its answer;
- :mod:`crawler.fetch.connection` bounds and counts what arrives for a request;
- :mod:`crawler.fetch.idle_connections` keeps connections between requests, within the limit on open files;
- :mod:`crawler.fetch.tls` verifies certificates and resumes sessions;
- :mod:`crawler.fetch.decoding` decodes content codings within bounds;
- :mod:`crawler.fetch.failures` describes a failure in one sentence for people;
- :mod:`crawler.fetch.resolver` resolves names to addresses;
- :mod:`crawler.fetch.address_guard` decides which addresses the crawler may connect to;
- :mod:`crawler.fetch.own_network` recognises the addresses of the machine and its network.
"""
