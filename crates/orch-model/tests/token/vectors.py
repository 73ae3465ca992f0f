"""Prints tokens made by nothing but Python's standard library, for `tests/token/main.rs` to compare ours with."""

import base64
import hashlib
import hmac
import json

KEYS = {"k1": bytes(range(32)).hex(), "k2": "f" * 64}
NODE = "nested-test.test-vm@father"
CHAIN = "01890000000070008000000000000001"


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(key, claims):
    payload = encode(json.dumps(claims, separators=(",", ":")).encode())
    return payload + "." + encode(hmac.new(bytes.fromhex(KEYS[key]), payload.encode(), hashlib.sha256).digest())


def claims(**more):
    return {"v": 1, "n": NODE, "s": "base", "iat": 1700000000, **more}


VECTORS = [
    ("spec", "k2", claims(aud="spec", exp=1700003600, jti=CHAIN + ".0", kid="k2")),
    ("report", "k2", claims(aud="report", exp=1700086400, jti=CHAIN + ".41", kid="k2")),
    ("old key", "k1", claims(aud="spec", exp=1700003600, jti=CHAIN + ".1", kid="k1")),
    ("legacy", "k1", claims()),
    ("without id", "k2", claims(aud="spec", exp=1700003600, kid="k2")),
    ("without key", "k2", claims(aud="spec", exp=1700003600, jti=CHAIN + ".0")),
]

tokens = [{"name": name, "claims": said, "token": token(key, said)} for name, key, said in VECTORS]
print(json.dumps({"keys": KEYS, "tokens": tokens}, indent=2))
