"""Addresses of the web: what is one, where it leads, and what may be asked at all. Nothing is sent here."""

from luthier.web.addresses import Reach, UrlFault, address_fault, address_of, leads_inside
from luthier.web.rules import UrlRules, url_fault
from luthier.web.urls import Origin, form_fault, origin, same_origin, shown

__all__ = [
    "Origin",
    "Reach",
    "UrlFault",
    "UrlRules",
    "address_fault",
    "address_of",
    "form_fault",
    "leads_inside",
    "origin",
    "same_origin",
    "shown",
    "url_fault",
]
