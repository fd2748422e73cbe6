from __future__ import annotations

import logging

logger = logging.getLogger("shop.mail")


class TryLaterError(Exception):
    """The mail service cannot take the mail now."""


class Mail:
    """Stands where the client of a real mail service would stand.

    Like many mail servers it turns away the first mail to an address that it has not seen ("greylisting").
    """

    def __init__(self) -> None:
        self._seen: set[str] = set()

    async def send(self, to: str, text: str) -> None:
        if to not in self._seen:
            self._seen.add(to)
            raise TryLaterError(f"451 {to} is new here, try again later")
        logger.info("mail to %s: %s", to, text)
