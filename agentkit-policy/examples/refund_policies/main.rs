//! Decides a few calls of the refund desk, then breaks its policies in every way that the load
//! notices and shows what it says.

use agentkit_policy::{Approvals, Call, Facts, PolicyEngine, PolicySource, ToolDeclaration, User};
use serde_json::{Value, json};

const TOOLS: &str = include_str!("tools.json");
const POLICIES: &str = include_str!("refund_desk.cedar");

/// Noon of the first of March 2026, in microseconds.
const NOW: i64 = 1_772_366_400_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tools = ToolDeclaration::read_list("tools.json", TOOLS)?;
    let engine = PolicyEngine::load(tools, &[PolicySource::new("refund_desk.cedar", POLICIES)])?;
    let set = engine.current();
    let clara = User::new("clara").role("clerk");
    let fiona = User::new("fiona").role("finance");
    for (tool, arguments) in [
        ("get_order", json!({"order_id": "o-1"})),
        ("issue_refund", refund(4_999, "DE")),
        ("issue_refund", refund(12_000, "DE")),
        ("issue_refund", refund(250_000, "DE")),
        ("issue_refund", refund(100, "KP")),
        (
            "cancel_order",
            json!({"order_id": "o-1", "reason": "fraud"}),
        ),
    ] {
        let call = Call {
            tool,
            arguments: &arguments,
            user: &clara,
            agent: "refund-desk",
            run: "run-1",
            step: 0,
            now: NOW,
            facts: Facts::default(),
        };
        println!("{arguments}\n{}", set.explain(&call));
        let asked = Approvals::requested_at(NOW);
        for person in set.who_may_approve(&call, &[clara.clone(), fiona.clone()], &asked) {
            println!("  `{}` may approve", person.id);
        }
        println!();
    }
    for (what, from, to) in [
        ("a syntax error", "permit (", "permit "),
        ("an unknown action", "\"get_order\"", "\"get_ordr\""),
        ("a misspelt field", "input.country", "input.contry"),
        (
            "a duplicate id",
            "\"small-refunds-run-alone\"",
            "\"clerks-look-up\"",
        ),
        ("a typo in a closed list", "::\"fraud\"", "::\"frod\""),
        (
            "a permit that spans questions",
            "action == Action::\"get_order\"",
            "action",
        ),
    ] {
        let broken = POLICIES.replacen(from, to, 1);
        println!("{what}:");
        match engine.reload(&[PolicySource::new("refund_desk.cedar", broken)]) {
            Ok(()) => println!("  loads"),
            Err(error) => println!("{error:#}"),
        }
        println!();
    }
    for (what, more) in [
        (
            "an overflow in a forbid",
            r#"@id("cap") forbid (principal, action in Action::"issue_refund", resource)
               when { context.input.amount_cents * 100 > 5000000 };"#,
        ),
        (
            "a blanket permit",
            r#"@id("anyone") permit (principal, action == Action::"issue_refund", resource);"#,
        ),
    ] {
        println!("{what}:");
        let sources = [("refund_desk.cedar", POLICIES), ("more.cedar", more)]
            .map(|(name, text)| PolicySource::new(name, text));
        engine.reload(&sources)?;
        for warning in engine.current().warnings() {
            println!("warning: {warning:#}");
        }
        println!();
    }
    Ok(())
}

fn refund(amount_cents: i64, country: &str) -> Value {
    json!({"order_id": "o-1", "amount_cents": amount_cents, "country": country})
}
