"""Sites behind another instance, asked over its REST API (docs/spec/sites.md, "Federation").

A configured address stands for all sites of the other side. Each of them is a site here, which
is asked like any other: what would be sent to a core becomes a request of the other side's API.
"""
