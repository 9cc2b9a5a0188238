//! The common answer of several sets of policies, as to a call of an agent below others: what one
//! of them denies is denied, and what one of them wants approved is approved first.

use agentkit_policy::{Decision, Outcome, Permission, Release, Verdict};

/// Both decisions as one.
pub(crate) fn both_decide(one: Decision, other: Decision) -> Decision {
    let rank = |outcome: &Outcome| match outcome {
        Outcome::Allow => 0,
        Outcome::RequireApproval { .. } => 1,
        Outcome::Deny => 2,
    };
    let (mut stricter, laxer) = if rank(&one.outcome) >= rank(&other.outcome) {
        (one, other)
    } else {
        (other, one)
    };
    stricter.errors.extend(laxer.errors);
    if rank(&stricter.outcome) == rank(&laxer.outcome) {
        stricter.determining.extend(laxer.determining);
        stricter.demanded_by_declaration &= laxer.demanded_by_declaration;
    }
    if let (Outcome::RequireApproval { quorum }, Outcome::RequireApproval { quorum: others }) =
        (&mut stricter.outcome, laxer.outcome)
    {
        *quorum = others.max(*quorum);
    }
    stricter.shadow = stricter.shadow.or(laxer.shadow);
    stricter
}

/// Both releases as one: a vote counts that counts for both.
pub(crate) fn both_release(one: Release, other: Release) -> Release {
    let rank = |verdict: &Verdict| match verdict {
        Verdict::Run => 0,
        Verdict::Wait { .. } => 1,
        Verdict::Deny => 2,
    };
    let (mut stricter, laxer) = if rank(&one.verdict) >= rank(&other.verdict) {
        (one, other)
    } else {
        (other, one)
    };
    stricter.errors.extend(laxer.errors);
    if rank(&stricter.verdict) == rank(&laxer.verdict) {
        stricter.determining.extend(laxer.determining);
    }
    if let (Verdict::Wait { quorum }, Verdict::Wait { quorum: others }) =
        (&mut stricter.verdict, laxer.verdict)
    {
        *quorum = others.max(*quorum);
    }
    stricter
        .counted
        .retain(|person| laxer.counted.contains(person));
    for vote in laxer.refused {
        let known = |known: &agentkit_policy::RefusedVote| known.approver == vote.approver;
        if !stricter.refused.iter().any(known) {
            stricter.refused.push(vote);
        }
    }
    stricter
}

/// Both permissions as one.
pub(crate) fn both_permit(one: Permission, other: Permission) -> Permission {
    let (mut stricter, laxer) = if one.permitted {
        (other, one)
    } else {
        (one, other)
    };
    stricter.errors.extend(laxer.errors);
    if stricter.permitted == laxer.permitted {
        stricter.determining.extend(laxer.determining);
    }
    stricter
}

#[cfg(test)]
mod tests {
    use agentkit_policy::RefusedVote;

    use super::*;

    fn decision(outcome: Outcome) -> Decision {
        Decision {
            outcome,
            determining: Vec::new(),
            errors: Vec::new(),
            demanded_by_declaration: false,
            shadow: None,
        }
    }

    fn release(verdict: Verdict, counted: &[&str], refused: &[&str]) -> Release {
        Release {
            verdict,
            counted: counted.iter().map(ToString::to_string).collect(),
            refused: refused
                .iter()
                .map(|person| RefusedVote {
                    approver: (*person).to_owned(),
                    why: "no".to_owned(),
                    determining: Vec::new(),
                })
                .collect(),
            determining: Vec::new(),
            errors: Vec::new(),
        }
    }

    #[test]
    fn the_stricter_answer_holds_whoever_gives_it() {
        let ask = |quorum| Outcome::RequireApproval { quorum };
        for (one, other, both) in [
            (Outcome::Allow, Outcome::Allow, Outcome::Allow),
            (Outcome::Allow, ask(1), ask(1)),
            (ask(1), ask(3), ask(3)),
            (ask(3), Outcome::Deny, Outcome::Deny),
            (Outcome::Allow, Outcome::Deny, Outcome::Deny),
        ] {
            assert_eq!(both_decide(decision(one), decision(other)).outcome, both);
            assert_eq!(both_decide(decision(other), decision(one)).outcome, both);
        }
        let wait = |quorum| Verdict::Wait { quorum };
        for (one, other, both) in [
            (Verdict::Run, Verdict::Run, Verdict::Run),
            (Verdict::Run, wait(2), wait(2)),
            (wait(2), wait(1), wait(2)),
            (wait(1), Verdict::Deny, Verdict::Deny),
        ] {
            let of = |verdict| release(verdict, &[], &[]);
            assert_eq!(both_release(of(one), of(other)).verdict, both);
            assert_eq!(both_release(of(other), of(one)).verdict, both);
        }
        for (one, other) in [(true, true), (true, false), (false, true), (false, false)] {
            let of = |permitted| Permission {
                permitted,
                why: String::new(),
                determining: Vec::new(),
                errors: Vec::new(),
            };
            assert_eq!(both_permit(of(one), of(other)).permitted, one && other);
        }
    }

    #[test]
    fn a_vote_counts_that_counts_for_both() {
        let one = release(Verdict::Run, &["ann", "bob"], &["eve"]);
        let other = release(Verdict::Run, &["bob", "cid"], &["eve", "ann"]);
        let both = both_release(one, other);
        assert_eq!(both.counted, ["bob"]);
        let refused: Vec<_> = both.refused.iter().map(|vote| &vote.approver).collect();
        assert_eq!(refused, ["eve", "ann"]);
    }
}
