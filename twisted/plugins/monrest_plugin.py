"""Makes ``twistd monrest`` known; names the module as text, so that listing imports nothing."""

from twisted.application.service import ServiceMaker

monrest = ServiceMaker("monrest", "monrest.tap", "Monitoring REST API daemon", "monrest")
