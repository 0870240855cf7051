"""Follows Order_Shipped__e through CometD with aiosfstream-ng. ``python follow_cometd.py 3`` ends after three events."""

import asyncio
import sys

import aiohttp
from aiosfstream_ng import Client, ReplayOption
from aiosfstream_ng.auth import AuthenticatorBase

FORM = {
    "grant_type": "password",
    "client_id": "tidegate",
    "client_secret": "tidegate-dev",
    "username": "developer@tidegate.local",
    "password": "tidegate-dev",
}


class LocalLogin(AuthenticatorBase):
    """The OAuth password flow here; against an org use aiosfstream_ng.PasswordAuthenticator as it is."""

    async def _authenticate(self):
        async with aiohttp.ClientSession() as session:
            answer = await session.post("http://127.0.0.1:8090/services/oauth2/token", data=FORM)
            return answer.status, await answer.json()


async def follow(count: int) -> None:
    async with Client(LocalLogin(), replay=ReplayOption.ALL_EVENTS) as client:
        await client.subscribe("/event/Order_Shipped__e")
        for _ in range(count):
            data = (await client.receive())["data"]
            print(data["event"]["replayId"], data["payload"]["Order_Number__c"], data["payload"]["Amount__c"])


asyncio.run(follow(int(sys.argv[1])))
