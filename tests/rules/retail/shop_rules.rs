//! The shop by itself, before anything is put in front of it.

use serde_json::{Value, json};

use super::{
    direct::{WRITING, execute},
    shop::Shop,
};
use crate::workloads;

fn shop(what: &str) -> Option<Shop> {
    workloads::folder(what).map(|folder| Shop::load(&folder))
}

/// The balance of one of a user's gift cards.
fn balance(shop: &Shop, user: &str, card: &str) -> Value {
    let user = serde_json::to_value(shop.user(user).unwrap()).unwrap();
    user["payment_methods"][card]["balance"].clone()
}

#[test]
fn the_right_calls_of_all_tasks_are_executed() {
    let Some(folder) = workloads::folder("the retail tasks, executed directly") else {
        return;
    };
    let shop = Shop::load(&folder);
    let (mut tasks, mut writes, mut changes) = (0, 0, 0);
    let mut refusals = Vec::new();
    for task in workloads::tasks(&folder, "tau-bench.jsonl") {
        if task.suite != "tau-retail" {
            continue;
        }
        tasks += 1;
        let mut here = shop.clone();
        for call in &task.calls {
            let before = here.clone();
            let outcome = execute(&mut here, &call.tool, &call.args);
            let writing = WRITING.contains(&call.tool.as_str());
            writes += usize::from(writing);
            changes += usize::from(here != before);
            assert!(writing || here == before, "{} only reads", call.tool);
            if outcome.is_err() {
                assert_eq!(here, before, "a refused call changes nothing");
                if writing {
                    refusals.push((task.number.as_u64().unwrap(), call.tool.clone()));
                }
            }
        }
    }
    // Four are refused (a refund to a foreign card, a second exchange, an empty gift card), and
    // one address is what it was before.
    assert_eq!((tasks, writes, changes), (115, 178, 173));
    let refusals: Vec<_> = refusals
        .iter()
        .map(|(task, tool)| (*task, tool.as_str()))
        .collect();
    assert_eq!(
        refusals,
        [
            (12, "return_delivered_order_items"),
            (13, "return_delivered_order_items"),
            (64, "exchange_delivered_order_items"),
            (106, "exchange_delivered_order_items"),
        ]
    );
}

#[test]
fn a_cancelled_order_is_paid_back_once() {
    let Some(mut shop) = shop("cancelling") else {
        return;
    };
    let (order, user, card) = first_pending_on_gift_card(&shop);
    let before = balance(&shop, &user, &card).as_f64().unwrap();
    let arguments = json!({"order_id": order, "reason": "no longer needed"});
    let cancelled = execute(&mut shop, "cancel_pending_order", &arguments).unwrap();
    assert_eq!(cancelled["status"], "cancelled");
    let paid = cancelled["payment_history"][0]["amount"].as_f64().unwrap();
    let after = balance(&shop, &user, &card).as_f64().unwrap();
    assert!(
        (after - before - paid).abs() < 0.001,
        "{before} + {paid} = {after}"
    );
    let untouched = shop.clone();
    assert!(execute(&mut shop, "cancel_pending_order", &arguments).is_err());
    assert_eq!(shop, untouched);
}

fn first_pending_on_gift_card(shop: &Shop) -> (String, String, String) {
    shop.orders()
        .find_map(|order| {
            let order = serde_json::to_value(order).unwrap();
            let card = order["payment_history"][0]["payment_method_id"].as_str()?;
            let fits = order["status"] == "pending" && card.starts_with("gift_card");
            let text = |name: &str| order[name].as_str().unwrap().to_owned();
            fits.then(|| (text("order_id"), text("user_id"), card.to_owned()))
        })
        .unwrap()
}

#[test]
fn what_cannot_be_done_changes_nothing() {
    let Some(shop) = shop("refusals of the shop") else {
        return;
    };
    let mut here = shop.clone();
    let (order, _, card) = first_pending_on_gift_card(&shop);
    let refused = [
        (
            "cancel_pending_order",
            json!({"order_id": "#W0", "reason": "ordered by mistake"}),
        ),
        ("cancel_pending_order", json!({"order_id": order})),
        (
            "modify_pending_order_items",
            json!({"order_id": order, "item_ids": ["1"], "new_item_ids": ["2"], "payment_method_id": card}),
        ),
        (
            "modify_pending_order_payment",
            json!({"order_id": order, "payment_method_id": card}),
        ),
        (
            "modify_pending_order_payment",
            json!({"order_id": order, "payment_method_id": "paypal_0"}),
        ),
        (
            "return_delivered_order_items",
            json!({"order_id": order, "item_ids": [], "payment_method_id": card}),
        ),
        (
            "modify_user_address",
            json!({"user_id": "nobody", "address1": "x"}),
        ),
        ("open_the_till", json!({})),
    ];
    for (tool, arguments) in refused {
        assert!(
            execute(&mut here, tool, &arguments).is_err(),
            "{tool} {arguments}"
        );
        assert_eq!(here, shop, "{tool}");
    }
}
