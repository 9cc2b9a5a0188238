//! The 16 tools of the retail suite, with the names and arguments of its schemas. Those that change
//! something wait for a person.

use std::collections::BTreeMap;

use agentkit::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    arithmetic,
    data::{Address, Order, Product, User},
    shared::SharedShop,
    shop::Refusal,
};

/// The reasons for which an order is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) enum CancelReason {
    #[serde(rename = "no longer needed")]
    NoLongerNeeded,
    #[serde(rename = "ordered by mistake")]
    OrderedByMistake,
}

impl CancelReason {
    fn as_str(self) -> &'static str {
        match self {
            Self::NoLongerNeeded => "no longer needed",
            Self::OrderedByMistake => "ordered by mistake",
        }
    }
}

/// Calculates an expression of numbers, `+ - * /` and parentheses.
#[tool(read_only)]
pub(crate) fn calculate(
    /// What to calculate.
    expression: &str,
) -> Result<String, Refusal> {
    arithmetic::evaluate(expression)
}

/// Cancels a pending order and gives the money back.
#[tool(require_approval)]
pub(crate) fn cancel_pending_order(
    /// Order, such as `#W0000000`.
    order_id: &str,
    /// Why.
    reason: CancelReason,
    #[ctx] shop: &SharedShop,
    #[ctx] run: &RunContext,
) -> Result<Order, Refusal> {
    let arguments = json!({
        "order_id": order_id,
        "reason": reason,
    });
    shop.write(run, "cancel_pending_order", &arguments, |shop| {
        shop.cancel(order_id, reason.as_str()).cloned()
    })
}

/// Exchanges items of a delivered order for others of the same product.
#[tool(require_approval)]
pub(crate) fn exchange_delivered_order_items(
    /// Order, such as `#W0000000`.
    order_id: &str,
    /// Items of the order; twice to mean two of them.
    item_ids: &[String],
    /// What takes their places, in the same order.
    new_item_ids: &[String],
    /// Where the difference is paid from or to.
    payment_method_id: &str,
    #[ctx] shop: &SharedShop,
    #[ctx] run: &RunContext,
) -> Result<Order, Refusal> {
    let arguments = json!({
        "order_id": order_id,
        "item_ids": item_ids,
        "new_item_ids": new_item_ids,
        "payment_method_id": payment_method_id,
    });
    shop.write(run, "exchange_delivered_order_items", &arguments, |shop| {
        shop.exchange(order_id, item_ids, new_item_ids, payment_method_id)
            .cloned()
    })
}

/// Finds a user by email address.
#[tool(read_only)]
pub(crate) fn find_user_id_by_email(
    /// Email address.
    email: &str,
    #[ctx] shop: &SharedShop,
) -> Result<String, Refusal> {
    shop.read().user_by_email(email).map(str::to_owned)
}

/// Finds a user by name and zip code.
#[tool(read_only)]
pub(crate) fn find_user_id_by_name_zip(
    /// First name.
    first_name: &str,
    /// Last name.
    last_name: &str,
    /// Zip code.
    zip: &str,
    #[ctx] shop: &SharedShop,
) -> Result<String, Refusal> {
    shop.read()
        .user_by_name(first_name, last_name, zip)
        .map(str::to_owned)
}

/// Shows an order.
#[tool(read_only)]
pub(crate) fn get_order_details(
    /// Order, such as `#W0000000`.
    order_id: &str,
    #[ctx] shop: &SharedShop,
) -> Result<Order, Refusal> {
    shop.read().order(order_id).cloned()
}

/// Shows a product with all its variants.
#[tool(read_only)]
pub(crate) fn get_product_details(
    /// Product.
    product_id: &str,
    #[ctx] shop: &SharedShop,
) -> Result<Product, Refusal> {
    shop.read().product(product_id).cloned()
}

/// Shows a user, with orders and payment methods.
#[tool(read_only)]
pub(crate) fn get_user_details(
    /// User, such as `sara_doe_496`.
    user_id: &str,
    #[ctx] shop: &SharedShop,
) -> Result<User, Refusal> {
    shop.read().user(user_id).cloned()
}

/// Lists the names of all products, with their ids.
#[tool(read_only)]
pub(crate) fn list_all_product_types(#[ctx] shop: &SharedShop) -> BTreeMap<String, String> {
    let shop = shop.read();
    let types = shop.product_types();
    types
        .into_iter()
        .map(|(name, id)| (name.to_owned(), id.to_owned()))
        .collect()
}

/// Changes where a pending order is sent.
#[tool(require_approval)]
#[expect(clippy::too_many_arguments, reason = "the schema is given")]
pub(crate) fn modify_pending_order_address(
    /// Order, such as `#W0000000`.
    order_id: &str,
    /// First line of the address.
    address1: &str,
    /// Second line of the address; may be empty.
    address2: &str,
    /// City.
    city: &str,
    /// State, such as `CA`.
    state: &str,
    /// Country, such as `USA`.
    country: &str,
    /// Zip code.
    zip: &str,
    #[ctx] shop: &SharedShop,
    #[ctx] run: &RunContext,
) -> Result<Order, Refusal> {
    let address = Address {
        address1: address1.to_owned(),
        address2: address2.to_owned(),
        city: city.to_owned(),
        country: country.to_owned(),
        state: state.to_owned(),
        zip: zip.to_owned(),
    };
    let arguments = json!({
        "order_id": order_id,
        "address1": address1,
        "address2": address2,
        "city": city,
        "state": state,
        "country": country,
        "zip": zip,
    });
    shop.write(run, "modify_pending_order_address", &arguments, |shop| {
        shop.change_address(order_id, address).cloned()
    })
}

/// Replaces items of a pending order by others of the same product; once.
#[tool(require_approval)]
pub(crate) fn modify_pending_order_items(
    /// Order, such as `#W0000000`.
    order_id: &str,
    /// Items of the order; twice to mean two of them.
    item_ids: &[String],
    /// What takes their places, in the same order.
    new_item_ids: &[String],
    /// Where the difference is paid from or to.
    payment_method_id: &str,
    #[ctx] shop: &SharedShop,
    #[ctx] run: &RunContext,
) -> Result<Order, Refusal> {
    let arguments = json!({
        "order_id": order_id,
        "item_ids": item_ids,
        "new_item_ids": new_item_ids,
        "payment_method_id": payment_method_id,
    });
    shop.write(run, "modify_pending_order_items", &arguments, |shop| {
        shop.change_items(order_id, item_ids, new_item_ids, payment_method_id)
            .cloned()
    })
}

/// Changes how a pending order is paid; once.
#[tool(require_approval)]
pub(crate) fn modify_pending_order_payment(
    /// Order, such as `#W0000000`.
    order_id: &str,
    /// Where the difference is paid from or to.
    payment_method_id: &str,
    #[ctx] shop: &SharedShop,
    #[ctx] run: &RunContext,
) -> Result<Order, Refusal> {
    let arguments = json!({
        "order_id": order_id,
        "payment_method_id": payment_method_id,
    });
    shop.write(run, "modify_pending_order_payment", &arguments, |shop| {
        shop.change_payment(order_id, payment_method_id).cloned()
    })
}

/// Changes a user's own address.
#[tool(require_approval)]
#[expect(clippy::too_many_arguments, reason = "the schema is given")]
pub(crate) fn modify_user_address(
    /// User, such as `sara_doe_496`.
    user_id: &str,
    /// First line of the address.
    address1: &str,
    /// Second line of the address; may be empty.
    address2: &str,
    /// City.
    city: &str,
    /// State, such as `CA`.
    state: &str,
    /// Country, such as `USA`.
    country: &str,
    /// Zip code.
    zip: &str,
    #[ctx] shop: &SharedShop,
    #[ctx] run: &RunContext,
) -> Result<User, Refusal> {
    let address = Address {
        address1: address1.to_owned(),
        address2: address2.to_owned(),
        city: city.to_owned(),
        country: country.to_owned(),
        state: state.to_owned(),
        zip: zip.to_owned(),
    };
    let arguments = json!({
        "user_id": user_id,
        "address1": address1,
        "address2": address2,
        "city": city,
        "state": state,
        "country": country,
        "zip": zip,
    });
    shop.write(run, "modify_user_address", &arguments, |shop| {
        shop.change_user_address(user_id, address).cloned()
    })
}

/// Takes back items of a delivered order.
#[tool(require_approval)]
pub(crate) fn return_delivered_order_items(
    /// Order, such as `#W0000000`.
    order_id: &str,
    /// Items of the order; twice to mean two of them.
    item_ids: &[String],
    /// Where the difference is paid from or to.
    payment_method_id: &str,
    #[ctx] shop: &SharedShop,
    #[ctx] run: &RunContext,
) -> Result<Order, Refusal> {
    let arguments = json!({
        "order_id": order_id,
        "item_ids": item_ids,
        "payment_method_id": payment_method_id,
    });
    shop.write(run, "return_delivered_order_items", &arguments, |shop| {
        shop.return_items(order_id, item_ids, payment_method_id)
            .cloned()
    })
}

/// Notes a thought. Changes nothing.
#[tool(read_only)]
pub(crate) fn think(
    /// The thought.
    thought: &str,
) -> &'static str {
    let _ = thought;
    ""
}

/// Hands the user over to a person.
#[tool(read_only)]
pub(crate) fn transfer_to_human_agents(
    /// What the user wants.
    summary: &str,
) -> &'static str {
    let _ = summary;
    "transferred"
}

/// The clerk of the shop.
#[agent(
    name = "retail-desk",
    model = "scripted/scripted",
    instructions = "You are the clerk of an online shop.",
    tools = [
        calculate,
        cancel_pending_order,
        exchange_delivered_order_items,
        find_user_id_by_email,
        find_user_id_by_name_zip,
        get_order_details,
        get_product_details,
        get_user_details,
        list_all_product_types,
        modify_pending_order_address,
        modify_pending_order_items,
        modify_pending_order_payment,
        modify_user_address,
        return_delivered_order_items,
        think,
        transfer_to_human_agents,
    ],
)]
pub(crate) struct RetailDesk;
