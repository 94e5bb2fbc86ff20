"""A password file, and what was read from it, with threads that a test can hold."""

import base64
import hashlib
import os

import bcrypt
from passlib.hash import apr_md5_crypt, sha256_crypt, sha512_crypt
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import Clock

from monrest.accounts.passwords import Passwords
from tests.fakes.keystore import result

PASSWORD = "pässwörd: \u20ac"


def sha(password):
    return "{SHA}" + base64.b64encode(hashlib.sha1(password.encode()).digest()).decode()


def blowfish(password, prefix="2b"):
    made = bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()
    return f"${prefix}{made[3:]}"


KINDS = {
    "bcrypt 2y": blowfish(PASSWORD, "2y"),
    "bcrypt 2a": blowfish(PASSWORD, "2a"),
    "bcrypt 2b": blowfish(PASSWORD),
    "apr1": apr_md5_crypt.hash(PASSWORD),
    "sha1": sha(PASSWORD),
    "sha256": sha256_crypt.using(rounds=1000).hash(PASSWORD),
    "sha512": sha512_crypt.using(rounds=1000).hash(PASSWORD),
}


class HeldThreads:
    """Runs calls at once, or when the test lets go of them; counts them."""

    def __init__(self):
        self.held, self.waiting, self.calls = False, [], 0

    def run(self, function):
        self.calls += 1
        if not self.held:
            return maybeDeferred(function)
        done = Deferred()
        self.waiting.append((function, done))
        return done

    def release(self):
        waiting, self.waiting = self.waiting, []
        for function, done in waiting:
            maybeDeferred(function).chainDeferred(done)


class World:
    def __init__(self, folder):
        self.path = folder / "htpasswd"
        self.clock, self.threads = Clock(), HeldThreads()
        self.clock.advance(1_700_000_000)
        self.stamp = 1_600_000_000
        self.passwords = Passwords(str(self.path), self.threads, self.clock)

    def write(self, *lines):
        self.path.write_text("\n".join(lines) + "\n")
        self.stamp += 1
        os.utime(self.path, (self.stamp, self.stamp))  # old enough to be believed

    def check(self, user="ann", password="right"):
        return result(self.passwords.check(user, password))
