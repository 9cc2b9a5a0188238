//! The shop: orders and refunds, in the same SQLite file as the runs.

use sea_orm::{
    ConnectionTrait as _, Database, DatabaseConnection, DbErr, SqliteTransactionMode, Statement,
    TransactionOptions, TransactionTrait as _, Value,
};
use serde::{Deserialize, Serialize};

/// An order, as the tools return it.
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[allow(clippy::struct_field_names, reason = "the model reads the names")]
pub struct Order {
    /// Such as `ord-1042`.
    pub order_id: String,
    /// Who bought.
    pub customer: String,
    /// What was bought.
    pub item: String,
    /// What was paid, in cents.
    pub total_cents: u64,
    /// What has been refunded so far, in cents.
    pub refunded_cents: u64,
}

/// A refund that was made.
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Refund {
    /// The order.
    pub order_id: String,
    /// What was refunded, in cents.
    pub amount_cents: u64,
    /// What is left of the order's total, in cents.
    pub left_cents: u64,
}

/// Why the shop does not do what it is asked.
#[derive(Debug, thiserror::Error)]
pub enum ShopError {
    /// There is no such order.
    #[error("there is no order `{0}`; orders look like `ord-1042`")]
    UnknownOrder(String),
    /// More than what is left.
    #[error("order `{order}` has {left} cents left to refund, not {amount}")]
    TooMuch {
        order: String,
        left: u64,
        amount: u64,
    },
    /// Nothing at all.
    #[error("a refund of nothing is none; give the amount in cents")]
    Nothing,
    /// The database failed.
    #[error("the shop's database failed")]
    Database(#[from] DbErr),
}

/// The shop. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Shop(DatabaseConnection);

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS orders (
    id TEXT PRIMARY KEY, customer TEXT NOT NULL, item TEXT NOT NULL, total_cents INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS refunds (
    call_id TEXT PRIMARY KEY, order_id TEXT NOT NULL REFERENCES orders (id),
    amount_cents INTEGER NOT NULL, requested_by TEXT NOT NULL
);
INSERT OR IGNORE INTO orders (id, customer, item, total_cents) VALUES
    ('ord-1042', 'Ada Byron', 'Espresso machine', 24900),
    ('ord-1043', 'Zoë Müller', 'Coffee beans, 1 kg', 1890),
    ('ord-1077', 'Grace Hopper', 'Café fit-out', 480000),
    ('ord-1099', 'Alan Turing', 'Roastery', 2500000);
";

impl Shop {
    /// Opens the shop's tables in a database, and fills them where they are new.
    pub async fn open(url: &str) -> Result<Self, DbErr> {
        let connection = Database::connect(url).await?;
        connection
            .execute_unprepared("PRAGMA busy_timeout = 15000")
            .await?;
        connection.execute_unprepared(TABLES).await?;
        Ok(Self(connection))
    }

    /// One order.
    pub async fn order(&self, id: &str) -> Result<Order, ShopError> {
        find(&self.0, id).await
    }

    /// Refunds an order, and never more than was paid.
    pub async fn refund(
        &self,
        call: &str,
        requester: &str,
        id: &str,
        amount_cents: u64,
    ) -> Result<Refund, ShopError> {
        if amount_cents == 0 {
            return Err(ShopError::Nothing);
        }
        let options = TransactionOptions {
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..TransactionOptions::default()
        };
        let tx = self.0.begin_with_options(options).await?;
        let order = find(&tx, id).await?;
        let left = order.total_cents.saturating_sub(order.refunded_cents);
        if amount_cents > left {
            return Err(ShopError::TooMuch {
                order: id.to_owned(),
                left,
                amount: amount_cents,
            });
        }
        let amount = i64::try_from(amount_cents).unwrap_or(i64::MAX);
        let values: [Value; 4] = [call.into(), id.into(), amount.into(), requester.into()];
        let insert = "INSERT INTO refunds (call_id, order_id, amount_cents, requested_by) \
                      VALUES ($1, $2, $3, $4)";
        tx.execute_raw(statement(insert, values)).await?;
        tx.commit().await?;
        let left_cents = left - amount_cents;
        Ok(Refund {
            order_id: id.to_owned(),
            amount_cents,
            left_cents,
        })
    }
}

fn statement<const N: usize>(sql: &str, values: [Value; N]) -> Statement {
    Statement::from_sql_and_values(sea_orm::DbBackend::Sqlite, sql, values)
}

async fn find(connection: &impl sea_orm::ConnectionTrait, id: &str) -> Result<Order, ShopError> {
    let select = "SELECT customer, item, total_cents, COALESCE((SELECT SUM(amount_cents) \
                  FROM refunds WHERE order_id = orders.id), 0) AS refunded FROM orders WHERE id = $1";
    let row = connection
        .query_one_raw(statement(select, [id.into()]))
        .await?
        .ok_or_else(|| ShopError::UnknownOrder(id.to_owned()))?;
    let cents = |column| {
        row.try_get::<i64>("", column)
            .map(|cents| u64::try_from(cents).unwrap_or(0))
    };
    Ok(Order {
        order_id: id.to_owned(),
        customer: row.try_get("", "customer")?,
        item: row.try_get("", "item")?,
        total_cents: cents("total_cents")?,
        refunded_cents: cents("refunded")?,
    })
}
