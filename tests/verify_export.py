#!/usr/bin/env python3
"""Checks an export of agentkit's journal (JSON Lines, on standard input) without agentkit.

Written from the description of the formats alone: it recomputes every chain, every fingerprint
and every root, and names the first thing that does not fit. Nothing but Python is needed.
"""
import hashlib
import json
import struct
import sys


def field(data):
    return b"\0" if data is None else b"\1" + struct.pack(">Q", len(data)) + data


def fields(domain, *parts):
    digest = hashlib.sha256(field(domain.encode()))
    for part in parts:
        digest.update(field(part))
    return digest.digest()


def raw(digest):
    if digest is None:
        return None
    kind, _, value = digest.partition(":")
    if kind != "sha256" or len(value) != 64:
        raise ValueError(f"`{digest}` is no digest")
    return bytes.fromhex(value)


def text(value):
    return None if value is None else value.encode()


def number(value):
    return struct.pack(">q", value)


def tree(leaves):
    """RFC 9162, section 2.1.1."""
    if not leaves:
        return hashlib.sha256().digest()
    if len(leaves) == 1:
        return leaves[0]
    half = 1
    while half * 2 < len(leaves):
        half *= 2
    return hashlib.sha256(b"\1" + tree(leaves[:half]) + tree(leaves[half:])).digest()


class Broken(Exception):
    pass


def require(holds, why):
    if not holds:
        raise Broken(why)


class Export:
    def __init__(self):
        self.runs, self.events = {}, {}
        self.root = None
        self.count = {"runs": 0, "events": 0, "fingerprints": 0, "erased": 0, "roots": 0}

    def record_run(self, run):
        require(run["run"] not in self.runs, "a run comes twice")
        self.runs[run["run"]] = run
        self.events[run["run"]] = []
        self.count["runs"] += 1

    def record_entry(self, entry):
        chain = self.events[entry["run"]]
        require(entry["sequence"] == len(chain) + 1, "its sequence number does not follow")
        previous = chain[-1] if chain else None
        require(raw(entry["previous"]) == previous, "it does not name the event before it")
        digest = fields(
            "agentkit/journal/v1",
            previous,
            text(entry["run"]),
            number(entry["sequence"]),
            number(entry["at"]),
            text(entry["body"]),
        )
        require(digest == raw(entry["digest"]), "its content does not match its digest")
        chain.append(digest)
        self.count["events"] += 1

    def record_call(self, call):
        if call["fingerprint"] is None:
            return
        if call["arguments"] is None:
            self.count["erased"] += 1
            return
        run = self.runs[call["run"]]
        path = [struct.pack(">Q", len(call["path"]))] + [text(name) for name in call["path"]]
        digest = fields(
            "agentkit/approval/v1",
            text(run["tenant"]),
            text(run["agent"]),
            raw(call["definition"]),
            text(call["run"]),
            text(call["call"]),
            *path,
            text(call["tool"]),
            raw(call["input_schema"]),
            text(call["arguments"]),
            text(run["requester"]),
            raw(call["policy_slice"]),
            bytes.fromhex(call["nonce"]),
        )
        require(digest == raw(call["fingerprint"]), "its content does not match its fingerprint")
        self.count["fingerprints"] += 1

    def record_root(self, root):
        before = self.root
        require(root["sequence"] == (before["sequence"] + 1 if before else 1), "a root is missing")
        previous = raw(before["digest"]) if before else None
        require(raw(root["previous"]) == previous, "it does not name the root before it")
        leaves = []
        for head in root["heads"]:
            events = self.events.get(head["run"], [])
            at = head["sequence"]
            require(
                0 < at <= len(events) and events[at - 1] == raw(head["digest"]),
                f"run {head['run']} had event {at} then, and the journal does not have it",
            )
            leaf = fields(
                "agentkit/journal/head/v1", text(head["run"]), number(at), raw(head["digest"])
            )
            leaves.append(hashlib.sha256(b"\0" + leaf).digest())
        require(tree(leaves) == raw(root["root"]), "the root is not that of its heads")
        digest = fields(
            "agentkit/journal/root/v1",
            previous,
            number(root["sequence"]),
            number(root["at"]),
            raw(root["root"]),
        )
        require(digest == raw(root["digest"]), "its content does not match its digest")
        self.root = root
        self.count["roots"] += 1

    def finish(self):
        for name, run in self.runs.items():
            chain = self.events[name]
            ends = len(chain) == run["sequence"] and (
                chain[-1] if chain else None
            ) == raw(run["head"])
            require(ends, f"the chain of run {name} does not end at its head")


def main():
    export, at = Export(), "the export"
    try:
        for line in sys.stdin:
            data = json.loads(line)["data"]
            at = f"{data['record']} {data.get('call') or data.get('run') or ''} {data.get('sequence', '')}"
            getattr(export, f"record_{data['record']}")(data)
        at = "the export"
        export.finish()
    except (Broken, KeyError, ValueError, TypeError, AttributeError) as error:
        print(f"{at.strip()}: {error}")
        return 1
    print(json.dumps(export.count))
    return 0


if __name__ == "__main__":
    sys.exit(main())
