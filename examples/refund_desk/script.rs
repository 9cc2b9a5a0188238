//! The offline model: a few rules instead of a language model, so that the example runs without
//! a key. It sees what a model would see and answers with the same messages.

use agentkit::model::{
    Message, ModelRequest, ResultStatus, ToolResultPart,
    scripted::{Reply, ScriptedModel},
};
use serde_json::{Value, json};

/// The clerk by rules.
pub fn clerk() -> ScriptedModel {
    ScriptedModel::new().answering(answer).pieces_of(12)
}

fn answer(request: &ModelRequest) -> Reply {
    let text = request.last_user_text().unwrap_or_default().to_owned();
    match request.messages.last() {
        Some(Message::Tool(message)) => match message.results.last() {
            Some(result) => after(&text, result),
            None => Reply::text("Nothing came back; please try again."),
        },
        _ => first(&text),
    }
}

fn first(text: &str) -> Reply {
    let lower = text.to_lowercase();
    if lower.contains("weather") {
        let city = text
            .split(" in ")
            .nth(1)
            .map(|city| city.trim_end_matches(['?', '.', ' ']));
        return Reply::text("Let me look out of the window. ")
            .call("get_weather", &json!({ "location": city }));
    }
    match order_id(text) {
        Some(id) => Reply::text(format!("Let me look at order {id}. "))
            .call("find_order", &json!({ "order_id": id })),
        None => Reply::text(
            "I can look up and refund orders, such as \"Refund order ord-1042\" or \
             \"Refund 20.00 of order ord-1042\", and I know the weather.",
        ),
    }
}

fn after(text: &str, result: &ToolResultPart) -> Reply {
    let content = &result.content;
    if result.status != ResultStatus::Succeeded {
        return Reply::text(match result.tool.as_str() {
            "issue_refund" => format!("The refund was not made: {content}."),
            _ => format!("That did not work: {content}."),
        });
    }
    let value: Value =
        serde_json::from_str(content.lines().next().unwrap_or_default()).unwrap_or_default();
    let field = |name: &str| value.get(name).cloned().unwrap_or_default();
    let cents = |name: &str| field(name).as_u64().unwrap_or_default();
    match result.tool.as_str() {
        "find_order" if text.to_lowercase().contains("refund") => {
            let left = cents("total_cents").saturating_sub(cents("refunded_cents"));
            let amount = amount_cents(text).unwrap_or(left);
            if amount == 0 {
                return Reply::text("That order has been refunded in full already.");
            }
            Reply::text(format!(
                "Found it; I ask for a refund of {}. ",
                money(amount)
            ))
            .call(
                "issue_refund",
                &json!({ "order_id": field("order_id"), "amount_cents": amount }),
            )
        }
        "find_order" => Reply::text(format!(
            "{} bought {} for {}; {} of it has been refunded.",
            field("customer").as_str().unwrap_or_default(),
            field("item").as_str().unwrap_or_default(),
            money(cents("total_cents")),
            money(cents("refunded_cents")),
        )),
        "issue_refund" => Reply::text(format!(
            "Done: {} of order {} has been refunded; {} is left.",
            money(cents("amount_cents")),
            field("order_id").as_str().unwrap_or_default(),
            money(cents("left_cents")),
        )),
        _ => Reply::text(value.as_str().unwrap_or(content).to_owned()),
    }
}

fn order_id(text: &str) -> Option<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
        .find(|word| word.starts_with("ord-") && word.len() > 4)
}

/// The first word that reads as an amount, such as `20`, `20.00` or `€20.00`.
fn amount_cents(text: &str) -> Option<u64> {
    // The digits of an order's number are no amount.
    text.split_whitespace()
        .filter(|word| !word.contains("ord-"))
        .find_map(parse_money)
}

/// `20`, `20.5` or `20.50` in cents.
pub fn parse_money(word: &str) -> Option<u64> {
    let word = word.trim_matches(|c: char| !c.is_ascii_digit());
    let (whole, cents) = word.split_once('.').unwrap_or((word, "0"));
    let cents = match cents.len() {
        1 => cents.parse::<u64>().ok()?.checked_mul(10)?,
        2 => cents.parse().ok()?,
        _ => return None,
    };
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(100)?
        .checked_add(cents)
}

/// Cents as people write them.
pub fn money(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}
