//! The calls of a task executed on the shop without any runtime: what a run is compared with.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{arithmetic, data::Address, shop::Shop};

/// The tools that change something; all others only read.
pub(crate) const WRITING: [&str; 7] = [
    "cancel_pending_order",
    "exchange_delivered_order_items",
    "modify_pending_order_address",
    "modify_pending_order_items",
    "modify_pending_order_payment",
    "modify_user_address",
    "return_delivered_order_items",
];

#[derive(Deserialize)]
struct Cancellation {
    order_id: String,
    reason: String,
}

#[derive(Deserialize)]
struct Swap {
    order_id: String,
    item_ids: Vec<String>,
    new_item_ids: Vec<String>,
    payment_method_id: String,
}

#[derive(Deserialize)]
struct Return {
    order_id: String,
    item_ids: Vec<String>,
    payment_method_id: String,
}

#[derive(Deserialize)]
struct Payment {
    order_id: String,
    payment_method_id: String,
}

fn read<T: DeserializeOwned>(arguments: &Value) -> Result<T, String> {
    serde_json::from_value(arguments.clone()).map_err(|error| error.to_string())
}

fn text<'a>(arguments: &'a Value, name: &str) -> Result<&'a str, String> {
    arguments
        .get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| format!("the argument `{name}` is missing"))
}

fn address(arguments: &Value) -> Result<Address, String> {
    let mut fields = arguments.clone();
    if let Some(fields) = fields.as_object_mut() {
        fields.retain(|name, _| name != "order_id" && name != "user_id");
    }
    read(&fields)
}

fn told(value: impl serde::Serialize) -> Result<Value, String> {
    serde_json::to_value(value).map_err(|error| error.to_string())
}

/// Executes one call.
pub(crate) fn execute(shop: &mut Shop, tool: &str, arguments: &Value) -> Result<Value, String> {
    let refused = |refusal: super::shop::Refusal| refusal.0;
    match tool {
        "calculate" => told(arithmetic::evaluate(text(arguments, "expression")?).map_err(refused)?),
        "cancel_pending_order" => {
            let Cancellation { order_id, reason } = read(arguments)?;
            told(shop.cancel(&order_id, &reason).map_err(refused)?)
        }
        "exchange_delivered_order_items" => {
            let Swap {
                order_id,
                item_ids,
                new_item_ids,
                payment_method_id,
            } = read(arguments)?;
            told(
                shop.exchange(&order_id, &item_ids, &new_item_ids, &payment_method_id)
                    .map_err(refused)?,
            )
        }
        "find_user_id_by_email" => told(
            shop.user_by_email(text(arguments, "email")?)
                .map_err(refused)?,
        ),
        "find_user_id_by_name_zip" => told(
            shop.user_by_name(
                text(arguments, "first_name")?,
                text(arguments, "last_name")?,
                text(arguments, "zip")?,
            )
            .map_err(refused)?,
        ),
        "get_order_details" => told(shop.order(text(arguments, "order_id")?).map_err(refused)?),
        "get_product_details" => told(
            shop.product(text(arguments, "product_id")?)
                .map_err(refused)?,
        ),
        "get_user_details" => told(shop.user(text(arguments, "user_id")?).map_err(refused)?),
        "list_all_product_types" => told(shop.product_types()),
        "modify_pending_order_address" => told(
            shop.change_address(text(arguments, "order_id")?, address(arguments)?)
                .map_err(refused)?,
        ),
        "modify_pending_order_items" => {
            let Swap {
                order_id,
                item_ids,
                new_item_ids,
                payment_method_id,
            } = read(arguments)?;
            told(
                shop.change_items(&order_id, &item_ids, &new_item_ids, &payment_method_id)
                    .map_err(refused)?,
            )
        }
        "modify_pending_order_payment" => {
            let Payment {
                order_id,
                payment_method_id,
            } = read(arguments)?;
            told(
                shop.change_payment(&order_id, &payment_method_id)
                    .map_err(refused)?,
            )
        }
        "modify_user_address" => told(
            shop.change_user_address(text(arguments, "user_id")?, address(arguments)?)
                .map_err(refused)?,
        ),
        "return_delivered_order_items" => {
            let Return {
                order_id,
                item_ids,
                payment_method_id,
            } = read(arguments)?;
            told(
                shop.return_items(&order_id, &item_ids, &payment_method_id)
                    .map_err(refused)?,
            )
        }
        "think" => told(text(arguments, "thought").map(|_| "")?),
        "transfer_to_human_agents" => told(text(arguments, "summary").map(|_| "transferred")?),
        other => Err(format!("there is no tool `{other}`")),
    }
}
