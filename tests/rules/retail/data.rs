//! What the shop holds, as in its published data.

#![allow(clippy::struct_field_names, reason = "the names are those of the data")]

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::money::Money;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Address {
    pub(crate) address1: String,
    pub(crate) address2: String,
    pub(crate) city: String,
    pub(crate) country: String,
    pub(crate) state: String,
    pub(crate) zip: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Item {
    pub(crate) name: String,
    pub(crate) product_id: String,
    pub(crate) item_id: String,
    pub(crate) price: Money,
    pub(crate) options: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fulfillment {
    pub(crate) tracking_id: Vec<String>,
    pub(crate) item_ids: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Status {
    #[serde(rename = "pending")]
    Pending,
    #[serde(rename = "pending (item modified)")]
    ItemsModified,
    #[serde(rename = "processed")]
    Processed,
    #[serde(rename = "delivered")]
    Delivered,
    #[serde(rename = "cancelled")]
    Cancelled,
    #[serde(rename = "return requested")]
    ReturnRequested,
    #[serde(rename = "exchange requested")]
    ExchangeRequested,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TransactionType {
    Payment,
    Refund,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Transaction {
    pub(crate) transaction_type: TransactionType,
    pub(crate) amount: Money,
    pub(crate) payment_method_id: String,
}

/// What was asked for after delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AfterDelivery {
    Return {
        items: Vec<String>,
        payment_method_id: String,
    },
    Exchange {
        items: Vec<String>,
        new_items: Vec<String>,
        payment_method_id: String,
        price_difference: Money,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    pub(crate) order_id: String,
    pub(crate) user_id: String,
    pub(crate) address: Address,
    pub(crate) items: Vec<Item>,
    pub(crate) fulfillments: Vec<Fulfillment>,
    pub(crate) status: Status,
    pub(crate) payment_history: Vec<Transaction>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cancel_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after_delivery: Option<AfterDelivery>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variant {
    pub(crate) item_id: String,
    pub(crate) options: BTreeMap<String, String>,
    pub(crate) available: bool,
    pub(crate) price: Money,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Product {
    pub(crate) name: String,
    pub(crate) product_id: String,
    pub(crate) variants: BTreeMap<String, Variant>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Name {
    pub(crate) first_name: String,
    pub(crate) last_name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum PaymentMethod {
    CreditCard {
        id: String,
        brand: String,
        last_four: String,
    },
    GiftCard {
        id: String,
        balance: Money,
    },
    Paypal {
        id: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct User {
    pub(crate) name: Name,
    pub(crate) address: Address,
    pub(crate) email: String,
    pub(crate) payment_methods: BTreeMap<String, PaymentMethod>,
    pub(crate) orders: Vec<String>,
}
