use crate::call::{Canonical, Digest, FieldHasher, RunId, Timestamp};

/// The end of a run's chain so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainHead {
    /// The sequence number of the last event; 0 where there is none.
    pub sequence: i64,
    /// The digest of the last event.
    pub digest: Option<Digest>,
}

impl ChainHead {
    /// The head of an empty chain.
    pub const EMPTY: Self = Self {
        sequence: 0,
        digest: None,
    };

    /// The entry that follows, with `body` as its canonical content.
    pub fn next(self, run: &RunId, at: Timestamp, body: Canonical) -> Entry {
        let sequence = self.sequence.saturating_add(1);
        let digest = digest_of(self.digest.as_ref(), run, sequence, at, &body);
        Entry {
            sequence,
            at,
            body,
            previous: self.digest,
            digest,
        }
    }
}

/// One event of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// Its place: 1, 2, 3, …
    pub sequence: i64,
    /// When, on the database's clock.
    pub at: Timestamp,
    /// The event's canonical content.
    pub body: Canonical,
    /// The digest of the entry before it.
    pub previous: Option<Digest>,
    /// The digest of this entry.
    pub digest: Digest,
}

impl Entry {
    /// An entry that was read from the store, unverified.
    pub const fn new(
        sequence: i64,
        at: Timestamp,
        body: Canonical,
        previous: Option<Digest>,
        digest: Digest,
    ) -> Self {
        Self {
            sequence,
            at,
            body,
            previous,
            digest,
        }
    }

    /// The head of a chain that ends here.
    pub const fn head(&self) -> ChainHead {
        ChainHead {
            sequence: self.sequence,
            digest: Some(self.digest),
        }
    }
}

fn digest_of(
    previous: Option<&Digest>,
    run: &RunId,
    sequence: i64,
    at: Timestamp,
    body: &Canonical,
) -> Digest {
    let mut hasher = FieldHasher::new("agentkit/journal/v1");
    hasher
        .optional(previous.map(|digest| digest.as_bytes().as_slice()))
        .field(run.as_str().as_bytes())
        .field(&sequence.to_be_bytes())
        .field(&at.as_micros().to_be_bytes())
        .field(body.as_bytes());
    hasher.finish()
}

/// The first event of a run that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the journal of run `{run}` is broken at event {sequence}: {why}")]
pub struct BrokenChain {
    run: RunId,
    sequence: i64,
    why: &'static str,
}

/// Checks a run's chain from its first event to `head`.
///
/// # Errors
///
/// With the first event that is missing, changed or out of place.
pub fn verify(run: &RunId, entries: &[Entry], head: ChainHead) -> Result<(), BrokenChain> {
    let broken = |sequence, why| BrokenChain {
        run: run.clone(),
        sequence,
        why,
    };
    let mut last = ChainHead::EMPTY;
    for entry in entries {
        if entry.sequence != last.sequence.saturating_add(1) {
            return Err(broken(
                entry.sequence,
                "its sequence number does not follow",
            ));
        }
        if entry.previous != last.digest {
            return Err(broken(
                entry.sequence,
                "it does not name the event before it",
            ));
        }
        let digest = digest_of(
            entry.previous.as_ref(),
            run,
            entry.sequence,
            entry.at,
            &entry.body,
        );
        if digest != entry.digest {
            return Err(broken(
                entry.sequence,
                "its content does not match its digest",
            ));
        }
        last = entry.head();
    }
    if last == head {
        Ok(())
    } else {
        Err(broken(
            last.sequence.saturating_add(1),
            "the chain ends before the recorded head",
        ))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may")]
    use super::*;

    fn chain(len: i64) -> (RunId, Vec<Entry>) {
        let run: RunId = "run-1".parse().unwrap();
        let mut entries: Vec<Entry> = Vec::new();
        for n in 0..len {
            let head = entries.last().map_or(ChainHead::EMPTY, Entry::head);
            entries.push(head.next(&run, Timestamp::from_micros(n), Canonical::of(&n).unwrap()));
        }
        (run, entries)
    }

    #[test]
    fn a_whole_chain_verifies() {
        let (run, entries) = chain(5);
        verify(&run, &entries, entries[4].head()).unwrap();
        verify(&run, &[], ChainHead::EMPTY).unwrap();
    }

    #[test]
    fn any_change_is_found_and_named() {
        let (run, entries) = chain(5);
        let head = entries[4].head();
        let broken_at = |change: fn(&mut Vec<Entry>)| {
            let mut entries = entries.clone();
            change(&mut entries);
            verify(&run, &entries, head).unwrap_err().sequence
        };
        assert_eq!(broken_at(|e| e[2].body = Canonical::of("x").unwrap()), 3);
        assert_eq!(broken_at(|e| e[2].at = Timestamp::from_micros(9)), 3);
        assert_eq!(
            broken_at(|e| {
                e.remove(1);
            }),
            3
        );
        assert_eq!(
            broken_at(|e| {
                e.pop();
            }),
            5
        );
        assert_eq!(broken_at(Vec::clear), 1);
        assert_eq!(broken_at(|e| e.swap(1, 2)), 3);
        let other: RunId = "run-2".parse().unwrap();
        assert!(verify(&other, &entries, head).is_err());
    }
}
