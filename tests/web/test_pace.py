"""How slowly a client may send, and whose fault it is not."""

from twisted.internet.task import Clock

from monrest.web.limits import HEAD_SECONDS, Pace
from tests.web.wire import get, one


def test_a_pause_of_the_process_is_nobodys_fault():
    clock, received, late = Clock(), [0], []
    pace = Pace(clock, 100, 30.0)
    pace.begin(lambda: received[0], lambda: late.append(clock.seconds()))
    clock.advance(300)
    assert late == []
    clock.advance(30)
    assert late == [330]


async def test_the_head_of_a_request_may_go_on_behind_a_pause(serve):
    clock = Clock()
    served = serve(clock=clock)
    client = await served.connect()
    whole = get("/hosts")
    client.send(whole[:20])
    while not any(channel._head_due for channel in served.room.site.channels):
        await one(await served.connect(), get("/fine"))
    clock.advance(HEAD_SECONDS + 20)
    assert not client.data
    assert (await one(client, whole[20:]))[0] == 200
