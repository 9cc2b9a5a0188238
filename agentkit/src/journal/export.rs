//! The journal as a stranger gets it: JSON Lines of `CloudEvents`, and what checks them offline.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{ChainHead, Entry, RunHead, merkle_root, verify};
use crate::call::{
    CallId, Canonical, Digest, FieldHasher, Fingerprint, FingerprintInput, Nonce, RunId, Timestamp,
};

/// One line of an export: a `CloudEvents` 1.0 envelope around a [`Record`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportLine {
    specversion: String,
    id: String,
    source: String,
    #[serde(rename = "type")]
    kind: String,
    time: String,
    subject: String,
    datacontenttype: String,
    data: Record,
}

/// What a line of an export says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Record {
    /// A run; it comes before its events.
    Run(ExportedRun),
    /// A call; it comes after its run.
    Call(ExportedCall),
    /// An event of a run's journal, in order.
    Entry(ExportedEntry),
    /// A root over the heads of runs, in order.
    Root(ExportedRoot),
}

/// A run in an export.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportedRun {
    /// Its id.
    pub run: RunId,
    /// The agent.
    pub agent: String,
    /// The tenant.
    pub tenant: Option<String>,
    /// The id of the requester.
    pub requester: String,
    /// How it stands.
    pub status: String,
    /// How many events its journal has.
    pub sequence: i64,
    /// The digest of the last one.
    pub head: Option<Digest>,
    /// When it was started.
    pub at: Timestamp,
}

/// A call in an export, with all that its fingerprint is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportedCall {
    /// Its run.
    pub run: RunId,
    /// Its id.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// Where it stands.
    pub state: String,
    /// The delegation path.
    pub path: Vec<String>,
    /// Digest of the agent's definition.
    pub definition: Digest,
    /// Digest of the tool's input schema.
    pub input_schema: Option<Digest>,
    /// Digest of the policy slice.
    pub policy_slice: Option<Digest>,
    /// The canonical arguments as text; absent where they were erased.
    pub arguments: Option<String>,
    /// The nonce of the last occasion on which people were asked, in hexadecimal digits.
    pub nonce: Option<String>,
    /// The fingerprint of that occasion.
    pub fingerprint: Option<Fingerprint>,
    /// When it was proposed.
    pub at: Timestamp,
}

/// An event of a journal in an export.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportedEntry {
    /// The run.
    pub run: RunId,
    /// Its place.
    pub sequence: i64,
    /// When.
    pub at: Timestamp,
    /// The digest of the one before it.
    pub previous: Option<Digest>,
    /// Its digest.
    pub digest: Digest,
    /// The canonical content, as the text that was hashed.
    pub body: String,
}

/// A root over the heads of the runs that changed since the one before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportedRoot {
    /// Its place: 1, 2, 3, …
    pub sequence: i64,
    /// When.
    pub at: Timestamp,
    /// The digest of the root before it.
    pub previous: Option<Digest>,
    /// The heads, in order of their runs.
    pub heads: Vec<RunHead>,
    /// The Merkle tree hash over them (RFC 9162).
    pub root: Digest,
    /// What can be signed and kept elsewhere: it holds all roots up to this one.
    pub digest: Digest,
}

impl ExportedRoot {
    /// The root that follows `previous`.
    pub fn after(previous: Option<&Self>, at: Timestamp, heads: Vec<RunHead>) -> Self {
        let sequence = previous.map_or(1, |root| root.sequence.saturating_add(1));
        let previous = previous.map(|root| root.digest);
        let root = merkle_root(&heads);
        Self {
            sequence,
            at,
            previous,
            digest: root_digest(sequence, at, previous.as_ref(), &root),
            heads,
            root,
        }
    }
}

fn root_digest(sequence: i64, at: Timestamp, previous: Option<&Digest>, root: &Digest) -> Digest {
    let mut fields = FieldHasher::new("agentkit/journal/root/v1");
    fields
        .optional(previous.map(|digest| digest.as_bytes().as_slice()))
        .field(&sequence.to_be_bytes())
        .field(&at.as_micros().to_be_bytes())
        .field(root.as_bytes());
    fields.finish()
}

impl ExportLine {
    /// Puts a record into its envelope.
    pub fn new(data: Record) -> Self {
        let (kind, id, subject, at) = match &data {
            Record::Run(run) => ("run", run.run.to_string(), run.run.to_string(), run.at),
            Record::Call(call) => ("call", call.call.to_string(), call.run.to_string(), call.at),
            Record::Entry(entry) => (
                "journal",
                format!("{}/{}", entry.run, entry.sequence),
                entry.run.to_string(),
                entry.at,
            ),
            Record::Root(root) => (
                "root",
                format!("root/{}", root.sequence),
                "roots".to_owned(),
                root.at,
            ),
        };
        Self {
            specversion: "1.0".to_owned(),
            id,
            source: "agentkit".to_owned(),
            kind: format!("agentkit.{kind}"),
            time: at.to_string(),
            subject,
            datacontenttype: "application/json".to_owned(),
            data,
        }
    }
}

/// What an export was found to hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// Runs whose chains are whole.
    pub runs: usize,
    /// Their events.
    pub events: usize,
    /// Fingerprints that were recomputed.
    pub fingerprints: usize,
    /// Calls whose arguments were erased, so that their fingerprint cannot be recomputed.
    pub erased: usize,
    /// Roots that were recomputed.
    pub roots: usize,
}

/// The first thing in an export that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, {what}: {why}")]
pub struct BrokenExport {
    line: usize,
    what: String,
    why: String,
}

/// Checks an export line by line, without the database it came from.
#[derive(Debug, Default)]
pub struct Verifier {
    line: usize,
    verified: Verified,
    run: Option<(ExportedRun, Vec<Entry>)>,
    /// The digest of every event that a root may name.
    seen: HashMap<RunId, Vec<Digest>>,
    last_root: Option<ExportedRoot>,
}

impl Verifier {
    /// A verifier that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks one more line.
    ///
    /// # Errors
    ///
    /// When it is not a line of an export, or does not fit those before it.
    pub fn line(&mut self, line: &str) -> Result<(), BrokenExport> {
        self.line += 1;
        let line: ExportLine = serde_json::from_str(line)
            .map_err(|error| self.broken("a record", &error.to_string()))?;
        match line.data {
            Record::Run(run) => {
                self.end_run()?;
                if self.seen.contains_key(&run.run) {
                    return Err(self.broken(&format!("run `{}`", run.run), "it comes twice"));
                }
                self.run = Some((run, Vec::new()));
                Ok(())
            }
            Record::Call(call) => self.call(&call),
            Record::Entry(entry) => self.entry(entry),
            Record::Root(root) => {
                self.end_run()?;
                self.root(root)
            }
        }
    }

    /// What the whole export was found to hold.
    ///
    /// # Errors
    ///
    /// When the last run is not whole.
    pub fn finish(mut self) -> Result<Verified, BrokenExport> {
        self.end_run()?;
        Ok(self.verified)
    }

    fn broken(&self, what: &str, why: &str) -> BrokenExport {
        BrokenExport {
            line: self.line,
            what: what.to_owned(),
            why: why.to_owned(),
        }
    }

    fn end_run(&mut self) -> Result<(), BrokenExport> {
        let Some((run, entries)) = self.run.take() else {
            return Ok(());
        };
        let head = ChainHead {
            sequence: run.sequence,
            digest: run.head,
        };
        verify(&run.run, &entries, head)
            .map_err(|error| self.broken(&format!("run `{}`", run.run), &error.to_string()))?;
        self.verified.runs += 1;
        self.verified.events += entries.len();
        let digests = entries.iter().map(|entry| entry.digest).collect();
        self.seen.insert(run.run, digests);
        Ok(())
    }

    fn entry(&mut self, entry: ExportedEntry) -> Result<(), BrokenExport> {
        let what = format!("event {} of run `{}`", entry.sequence, entry.run);
        let body = Canonical::from_stored(entry.body)
            .map_err(|error| self.broken(&what, &error.to_string()))?;
        match &mut self.run {
            Some((run, entries)) if run.run == entry.run => {
                entries.push(Entry::new(
                    entry.sequence,
                    entry.at,
                    body,
                    entry.previous,
                    entry.digest,
                ));
                Ok(())
            }
            _ => Err(self.broken(&what, "it does not follow its run")),
        }
    }

    fn call(&mut self, call: &ExportedCall) -> Result<(), BrokenExport> {
        let what = format!("call `{}`", call.call);
        let run = match &self.run {
            Some((run, _)) if run.run == call.run => run,
            _ => return Err(self.broken(&what, "it does not follow its run")),
        };
        let Some(fingerprint) = call.fingerprint else {
            return Ok(());
        };
        let Some(arguments) = &call.arguments else {
            self.verified.erased += 1;
            return Ok(());
        };
        let arguments = Canonical::from_stored(arguments.as_str())
            .map_err(|error| self.broken(&what, &error.to_string()))?;
        let nonce = call.nonce.as_deref().and_then(nonce);
        let (Some(input_schema), Some(policy_slice), Some(nonce)) =
            (&call.input_schema, &call.policy_slice, &nonce)
        else {
            return Err(self.broken(&what, "a field of its fingerprint is missing"));
        };
        let input = FingerprintInput {
            tenant: run.tenant.as_deref(),
            agent: &run.agent,
            definition: &call.definition,
            run: &call.run,
            call: &call.call,
            path: &call.path,
            tool: &call.tool,
            input_schema,
            arguments: &arguments,
            requester: &run.requester,
            policy_slice,
            nonce,
        };
        if input.fingerprint() != fingerprint {
            return Err(self.broken(&what, "its content does not match its fingerprint"));
        }
        self.verified.fingerprints += 1;
        Ok(())
    }

    fn root(&mut self, root: ExportedRoot) -> Result<(), BrokenExport> {
        let what = format!("root {}", root.sequence);
        let follows = ExportedRoot::after(self.last_root.as_ref(), root.at, root.heads.clone());
        if follows != root {
            return Err(self.broken(&what, "it is not the root that follows from its heads"));
        }
        for head in &root.heads {
            let index = usize::try_from(head.sequence)
                .ok()
                .and_then(|at| at.checked_sub(1));
            let known = self.seen.get(&head.run);
            let known = known.and_then(|digests| digests.get(index?));
            if known != Some(&head.digest) {
                let why = format!(
                    "run `{}` had event {} then, and the journal does not have it",
                    head.run, head.sequence
                );
                return Err(self.broken(&what, &why));
            }
        }
        self.verified.roots += 1;
        self.last_root = Some(root);
        Ok(())
    }
}

fn nonce(hex: &str) -> Option<Nonce> {
    let mut bytes = [0; 16];
    if hex.len() != 32 || !hex.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(at * 2..at * 2 + 2)?, 16).ok()?;
    }
    Some(Nonce::from_bytes(bytes))
}
