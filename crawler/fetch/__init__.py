"""The HTTP side of the shell: one request in, one :data:`crawler.model.FetchResult` out.

Whatever a server or the network does is data, never an exception. Every answer is bounded in headers, bytes
and time; redirects are reported, not followed, for robots.txt, scope and the address guard must be asked again
at each hop. A request is sent exactly once, so the request log tells all that a site was asked.

- :mod:`crawler.fetch.client` sends requests and reads answers;
- :mod:`crawler.fetch.decoding` undoes content codings within bounds;
- :mod:`crawler.fetch.failures` puts what went wrong into one sentence for people;
- :mod:`crawler.fetch.resolver` turns names into addresses;
- :mod:`crawler.fetch.address_guard` says which addresses may be connected to.
"""
