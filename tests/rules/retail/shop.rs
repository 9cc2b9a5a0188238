//! The shop: an implementation of our own of what the 16 tools of the retail suite do, over its
//! published orders, products and users. Every method either does all of what it says or changes
//! nothing.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use serde::de::DeserializeOwned;

use super::{
    data::{
        Address, AfterDelivery, Order, PaymentMethod, Product, Status, Transaction,
        TransactionType, User, Variant,
    },
    money::Money,
};
use crate::workloads;

/// Why the shop refuses, in words for the model.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal(pub(crate) String);

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

fn refuse<T>(why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal(why.into()))
}

/// All that the shop knows. Two shops are equal when nothing tells them apart. Clones share what
/// they have not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shop {
    orders: Shared<Order>,
    products: Shared<Product>,
    users: Shared<User>,
}

type Shared<T> = BTreeMap<Arc<str>, Arc<T>>;

fn load<T: DeserializeOwned>(folder: &Path, file: &str) -> Shared<T> {
    let entries: BTreeMap<String, T> = workloads::json(folder, file);
    entries
        .into_iter()
        .map(|(id, entry)| (id.into(), Arc::new(entry)))
        .collect()
}

impl Shop {
    pub(crate) fn load(workloads: &Path) -> Self {
        let folder = workloads.join("tau-retail-data");
        Self {
            orders: load(&folder, "orders.json"),
            products: load(&folder, "products.json"),
            users: load(&folder, "users.json"),
        }
    }

    pub(crate) fn user_by_email(&self, email: &str) -> Result<&str, Refusal> {
        self.users
            .iter()
            .find(|(_, user)| user.email.eq_ignore_ascii_case(email))
            .map(|(id, _)| &**id)
            .ok_or_else(|| Refusal(format!("there is no user with the email `{email}`")))
    }

    pub(crate) fn user_by_name(&self, first: &str, last: &str, zip: &str) -> Result<&str, Refusal> {
        self.users
            .iter()
            .find(|(_, user)| {
                user.name.first_name.eq_ignore_ascii_case(first)
                    && user.name.last_name.eq_ignore_ascii_case(last)
                    && user.address.zip == zip
            })
            .map(|(id, _)| &**id)
            .ok_or_else(|| Refusal(format!("there is no user `{first} {last}` in {zip}")))
    }

    pub(crate) fn user(&self, id: &str) -> Result<&User, Refusal> {
        self.users
            .get(id)
            .map(Arc::as_ref)
            .ok_or_else(|| Refusal(format!("there is no user `{id}`")))
    }

    pub(crate) fn order(&self, id: &str) -> Result<&Order, Refusal> {
        self.orders
            .get(id)
            .map(Arc::as_ref)
            .ok_or_else(|| Refusal(format!("there is no order `{id}`")))
    }

    pub(crate) fn orders(&self) -> impl Iterator<Item = &Order> {
        self.orders.values().map(Arc::as_ref)
    }

    pub(crate) fn product(&self, id: &str) -> Result<&Product, Refusal> {
        self.products
            .get(id)
            .map(Arc::as_ref)
            .ok_or_else(|| Refusal(format!("there is no product `{id}`")))
    }

    /// Names of all products, with their ids.
    pub(crate) fn product_types(&self) -> BTreeMap<&str, &str> {
        self.products
            .values()
            .map(|product| (product.name.as_str(), product.product_id.as_str()))
            .collect()
    }

    pub(crate) fn cancel(&mut self, order_id: &str, reason: &str) -> Result<&Order, Refusal> {
        let order = self.pending(order_id)?;
        let user_id = order.user_id.clone();
        let refunds: Vec<Transaction> = order
            .payment_history
            .iter()
            .map(|paid| Transaction {
                // What was given back before is taken back, so that the sum is zero.
                transaction_type: match paid.transaction_type {
                    TransactionType::Payment => TransactionType::Refund,
                    TransactionType::Refund => TransactionType::Payment,
                },
                ..paid.clone()
            })
            .collect();
        for refund in &refunds {
            self.settle(&user_id, refund)?;
        }
        let order = self.order_mut(order_id)?;
        order.status = Status::Cancelled;
        order.cancel_reason = Some(reason.to_owned());
        order.payment_history.extend(refunds);
        Ok(order)
    }

    pub(crate) fn change_address(
        &mut self,
        order_id: &str,
        address: Address,
    ) -> Result<&Order, Refusal> {
        self.pending(order_id)?;
        let order = self.order_mut(order_id)?;
        order.address = address;
        Ok(order)
    }

    pub(crate) fn change_user_address(
        &mut self,
        user_id: &str,
        address: Address,
    ) -> Result<&User, Refusal> {
        self.user(user_id)?;
        let user = self.user_mut(user_id)?;
        user.address = address;
        Ok(user)
    }

    pub(crate) fn change_payment(
        &mut self,
        order_id: &str,
        method: &str,
    ) -> Result<&Order, Refusal> {
        let order = self.pending(order_id)?;
        let user_id = order.user_id.clone();
        let [paid] = order.payment_history.as_slice() else {
            return refuse("the payment of an order can be changed only once");
        };
        if paid.payment_method_id == method {
            return refuse(format!("the order is paid with `{method}` already"));
        }
        let refund = Transaction {
            transaction_type: TransactionType::Refund,
            ..paid.clone()
        };
        let payment = Transaction {
            payment_method_id: method.to_owned(),
            ..paid.clone()
        };
        self.afford(&user_id, method, payment.amount)?;
        self.settle(&user_id, &payment)?;
        self.settle(&user_id, &refund)?;
        let order = self.order_mut(order_id)?;
        order.payment_history.extend([payment, refund]);
        Ok(order)
    }

    pub(crate) fn change_items(
        &mut self,
        order_id: &str,
        items: &[String],
        new_items: &[String],
        method: &str,
    ) -> Result<&Order, Refusal> {
        let order = self.pending(order_id)?;
        if order.status == Status::ItemsModified {
            return refuse("the items of an order can be changed only once");
        }
        let user_id = order.user_id.clone();
        let (variants, difference) = self.replacements(order, items, new_items)?;
        self.afford(&user_id, method, difference)?;
        let transaction = Transaction {
            transaction_type: if difference > Money(0) {
                TransactionType::Payment
            } else {
                TransactionType::Refund
            },
            amount: Money(difference.0.abs()),
            payment_method_id: method.to_owned(),
        };
        self.settle(&user_id, &transaction)?;
        let order = self.order_mut(order_id)?;
        for (old, variant) in items.iter().zip(variants) {
            if let Some(item) = order.items.iter_mut().find(|item| item.item_id == *old) {
                item.item_id = variant.item_id;
                item.price = variant.price;
                item.options = variant.options;
            }
        }
        order.payment_history.push(transaction);
        order.status = Status::ItemsModified;
        Ok(order)
    }

    pub(crate) fn exchange(
        &mut self,
        order_id: &str,
        items: &[String],
        new_items: &[String],
        method: &str,
    ) -> Result<&Order, Refusal> {
        let order = self.delivered(order_id)?;
        let (_, difference) = self.replacements(order, items, new_items)?;
        self.afford(&order.user_id, method, difference)?;
        let order = self.order_mut(order_id)?;
        order.status = Status::ExchangeRequested;
        order.after_delivery = Some(AfterDelivery::Exchange {
            items: sorted(items),
            new_items: sorted(new_items),
            payment_method_id: method.to_owned(),
            price_difference: difference,
        });
        Ok(order)
    }

    pub(crate) fn return_items(
        &mut self,
        order_id: &str,
        items: &[String],
        method: &str,
    ) -> Result<&Order, Refusal> {
        let order = self.delivered(order_id)?;
        held(order, items)?;
        let paid_with = order
            .payment_history
            .first()
            .is_some_and(|paid| paid.payment_method_id == method);
        let gift_card = matches!(
            self.method(&order.user_id, method)?,
            PaymentMethod::GiftCard { .. }
        );
        if !paid_with && !gift_card {
            return refuse("a refund goes to a gift card, or to what the order was paid with");
        }
        let order = self.order_mut(order_id)?;
        order.status = Status::ReturnRequested;
        order.after_delivery = Some(AfterDelivery::Return {
            items: sorted(items),
            payment_method_id: method.to_owned(),
        });
        Ok(order)
    }

    fn pending(&self, order_id: &str) -> Result<&Order, Refusal> {
        let order = self.order(order_id)?;
        match order.status {
            Status::Pending | Status::ItemsModified => Ok(order),
            _ => refuse(format!("the order `{order_id}` is not pending")),
        }
    }

    fn delivered(&self, order_id: &str) -> Result<&Order, Refusal> {
        let order = self.order(order_id)?;
        match order.status {
            Status::Delivered => Ok(order),
            _ => refuse(format!(
                "the order `{order_id}` is not delivered, or was sent back once already"
            )),
        }
    }

    /// The variants that take the place of items, and what they cost more.
    fn replacements(
        &self,
        order: &Order,
        items: &[String],
        new_items: &[String],
    ) -> Result<(Vec<Variant>, Money), Refusal> {
        held(order, items)?;
        if items.len() != new_items.len() {
            return refuse("each item needs one new item");
        }
        let mut variants = Vec::new();
        let mut difference = Money(0);
        for (old, new) in items.iter().zip(new_items) {
            let item = order.items.iter().find(|item| item.item_id == *old);
            let item = item.ok_or_else(|| Refusal(format!("there is no item `{old}`")))?;
            let variant = self
                .product(&item.product_id)?
                .variants
                .get(new)
                .filter(|variant| variant.available)
                .ok_or_else(|| Refusal(format!("the item `{new}` is not to be had")))?;
            difference = difference + variant.price - item.price;
            variants.push(variant.clone());
        }
        Ok((variants, difference))
    }

    fn method(&self, user_id: &str, method: &str) -> Result<&PaymentMethod, Refusal> {
        self.user(user_id)?
            .payment_methods
            .get(method)
            .ok_or_else(|| Refusal(format!("the user has no payment method `{method}`")))
    }

    fn afford(&self, user_id: &str, method: &str, amount: Money) -> Result<(), Refusal> {
        match self.method(user_id, method)? {
            PaymentMethod::GiftCard { balance, .. } if *balance < amount => {
                refuse("the gift card does not hold enough")
            }
            _ => Ok(()),
        }
    }

    /// Moves money to or from a gift card; other methods are the bank's business.
    fn settle(&mut self, user_id: &str, transaction: &Transaction) -> Result<(), Refusal> {
        let user = self.user_mut(user_id)?;
        if let Some(PaymentMethod::GiftCard { balance, .. }) =
            user.payment_methods.get_mut(&transaction.payment_method_id)
        {
            *balance = match transaction.transaction_type {
                TransactionType::Payment => *balance - transaction.amount,
                TransactionType::Refund => *balance + transaction.amount,
            };
        }
        Ok(())
    }

    fn order_mut(&mut self, id: &str) -> Result<&mut Order, Refusal> {
        self.orders
            .get_mut(id)
            .map(Arc::make_mut)
            .ok_or_else(|| Refusal(format!("there is no order `{id}`")))
    }

    fn user_mut(&mut self, id: &str) -> Result<&mut User, Refusal> {
        self.users
            .get_mut(id)
            .map(Arc::make_mut)
            .ok_or_else(|| Refusal(format!("there is no user `{id}`")))
    }
}

/// Whether the order holds these items, as often as they are named.
fn held(order: &Order, items: &[String]) -> Result<(), Refusal> {
    for item in items {
        let asked = items.iter().filter(|other| *other == item).count();
        let there = order
            .items
            .iter()
            .filter(|held| held.item_id == *item)
            .count();
        if asked > there {
            return refuse(format!(
                "the order does not hold the item `{item}` so often"
            ));
        }
    }
    Ok(())
}

fn sorted(items: &[String]) -> Vec<String> {
    let mut items = items.to_vec();
    items.sort();
    items
}
