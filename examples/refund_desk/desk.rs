//! The agent of the refund desk and its tools.

use agentkit::prelude::*;
use serde::{Deserialize, Serialize};

use crate::shop::{Order, Refund, Shop, ShopError};

/// Look up an order by its number.
#[tool(read_only)]
pub async fn find_order(
    /// Number of the order, such as `ord-1042`.
    order_id: String,
    #[ctx] shop: &Shop,
) -> Result<Order, ShopError> {
    shop.order(&order_id).await
}

/// Refund an order to its original payment method.
#[tool(require_approval = "money leaves the company", destructive)]
pub async fn issue_refund(
    /// Order to refund, such as `ord-1042`.
    order_id: String,
    /// Amount in cents.
    amount_cents: u64,
    #[ctx] shop: &Shop,
    #[ctx] run: &RunContext,
) -> Result<Refund, ShopError> {
    // The key is the same for every start of this call: the table of refunds takes it once.
    shop.refund(
        &run.idempotency_key,
        &run.requester.id,
        &order_id,
        amount_cents,
    )
    .await
}

/// What `get_weather` asks when no city was given.
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AskCity {
    /// The question for the user.
    pub question: String,
}

/// The answer to [`AskCity`].
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct City {
    /// Name of the city.
    pub city: String,
}

/// Weather for a city. Asks which city when none was given.
#[tool(read_only, suspend = AskCity, resume = City)]
pub fn get_weather(
    /// Name of the city.
    location: Option<String>,
    #[resume] answer: Option<City>,
) -> Flow<String, AskCity> {
    match location.or(answer.map(|answer| answer.city)) {
        Some(city) => Flow::Done(format!("{city}: 18 °C, light rain")),
        None => Flow::Suspend(AskCity {
            question: "Which city?".to_owned(),
        }),
    }
}

/// The clerk of a refund desk.
#[agent(
    name = "refund-desk",
    model = "openai/gpt-5-mini",
    instructions = "You are the clerk of a refund desk. Look an order up before you refund it. \
                    Amounts are in cents. Never refund more than was asked for.",
    tools = [find_order, issue_refund, get_weather],
    policy = "policies/refund.cedar",
)]
pub struct RefundDesk;
