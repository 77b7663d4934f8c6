"""The code of an agent that is a process of this machine."""

import os
import queue
import select
import signal
import socket
import threading
from typing import Final, NoReturn

from dagster_dataops.execution.agent_pool import PLACED, AgentOrder, Ended
from dagster_dataops.execution.agents.agent import Agent
from dagster_dataops.execution.cluster.channel import Channel

_WAIT_MS: Final = 50


def main(descriptor: int) -> NoReturn:
    """Work until the end of the run, or of the head; then for other runs if it is to rest."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the head handles Ctrl-C
    channel = Channel(socket.socket(fileno=descriptor))
    rests = True
    while rests:
        agent = Agent(_next_order(channel))
        agent.messages.put(PLACED)
        threading.Thread(target=agent.run, daemon=True).start()
        while not _sent_last(channel, agent):
            _follow_orders(channel, agent, _WAIT_MS)
        rests = agent.rests
    os._exit(0)


def _next_order(channel: Channel) -> AgentOrder:
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    while not channel.ended:
        poll.poll()
        for message in channel.receive():
            if isinstance(message, AgentOrder):  # else a command that came after the end of a run
                return message
    os._exit(1)


def _follow_orders(channel: Channel, agent: Agent, milliseconds: int) -> None:
    """Follow the orders that arrive; end if the head has ended."""
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    if poll.poll(milliseconds):
        for instruction in channel.receive():
            agent.follow(instruction)
    if channel.ended:
        os._exit(1)  # worker processes end with this one


def _sent_last(channel: Channel, agent: Agent) -> bool:
    """Send the messages of the agent; return whether the last one is sent."""
    try:
        while True:
            message = agent.messages.get_nowait()
            channel.send(message)
            if isinstance(message, Ended):
                _send_all(channel)
                return True
    except queue.Empty:
        channel.flush()
        return False


def _send_all(channel: Channel) -> None:
    poll = select.poll()
    poll.register(channel, select.POLLOUT)
    while channel.full:
        poll.poll()
        channel.flush()
