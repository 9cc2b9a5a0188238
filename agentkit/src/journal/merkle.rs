//! The Merkle tree hash of RFC 9162, section 2.1.1, with SHA-256.

use sha2::{Digest as _, Sha256};

use crate::call::{Digest, FieldHasher, RunId};

/// The head of one run's journal, as a leaf of a tree.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RunHead {
    /// The run.
    pub run: RunId,
    /// The sequence number of its last event.
    pub sequence: i64,
    /// The digest of its last event.
    pub digest: Digest,
}

impl RunHead {
    fn leaf(&self) -> [u8; 32] {
        let mut fields = FieldHasher::new("agentkit/journal/head/v1");
        fields
            .field(self.run.as_str().as_bytes())
            .field(&self.sequence.to_be_bytes())
            .field(self.digest.as_bytes());
        hash(0, &[fields.finish().as_bytes()])
    }
}

/// The root over the heads of runs, in the order given.
pub fn merkle_root(heads: &[RunHead]) -> Digest {
    let leaves: Vec<_> = heads.iter().map(RunHead::leaf).collect();
    Digest::from_bytes(tree(&leaves))
}

fn hash(tag: u8, parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update([tag]);
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}

fn tree(leaves: &[[u8; 32]]) -> [u8; 32] {
    match leaves {
        [] => Sha256::digest([]).into(),
        [leaf] => *leaf,
        _ => {
            // The largest power of two below their number.
            let half = 1 << (usize::BITS - 1 - (leaves.len() - 1).leading_zeros());
            let (left, right) = leaves.split_at(half);
            hash(1, &[&tree(left), &tree(right)])
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may")]
    use super::*;

    fn leaf(bytes: &[u8]) -> [u8; 32] {
        hash(0, &[bytes])
    }

    /// The test vectors of certificate-transparency (the reference implementation of the RFC).
    #[test]
    fn it_is_the_tree_of_the_rfc() {
        let data: [&[u8]; 8] = [
            b"",
            b"\x00",
            b"\x10",
            b"\x20\x21",
            b"\x30\x31",
            b"\x40\x41\x42\x43",
            b"\x50\x51\x52\x53\x54\x55\x56\x57",
            b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
        ];
        let leaves: Vec<_> = data.iter().map(|data| leaf(data)).collect();
        let roots = [
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
            "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
            "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
            "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
            "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
        ];
        for (many, root) in roots.iter().enumerate() {
            let digest = Digest::from_bytes(tree(&leaves[..many]));
            assert_eq!(digest.to_string(), format!("sha256:{root}"), "{many}");
        }
    }
}
