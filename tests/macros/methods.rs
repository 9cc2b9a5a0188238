//! `#[tools]`: methods that share their value.

use std::sync::atomic::{AtomicU64, Ordering};

use agentkit::{
    tool::{Contexts, Flow, Tool},
    tools,
};
use serde_json::json;

use crate::{call_with, context, properties};

/// A till.
#[derive(Default)]
pub struct Till {
    cents: AtomicU64,
}

type Cents = u64;

/// Associated types are reached through `Self`.
trait Money {
    type Unit;
}

impl Money for Till {
    type Unit = u64;
}

#[tools]
impl Till {
    const START: u64 = { 3 };

    /// Put money in.
    #[tool(require_approval = "money moves", labels = ["money"])]
    async fn put(
        &self,
        /// How much.
        cents: Cents,
        #[arg(default = Self::START)] extra: <Self as Money>::Unit,
    ) -> Cents {
        self.cents.fetch_add(cents + extra, Ordering::Relaxed) + cents + extra
    }

    /// How much is in it.
    #[tool(name = "count_till", type = CountTill, read_only)]
    pub fn count(&self) -> Result<Cents, String> {
        Ok(Self::rounded(self.cents.load(Ordering::Relaxed)))
    }

    /// Needs no till.
    #[agentkit::tool]
    fn price(#[ctx] factor: &u64, of: &str) -> Cents {
        factor * u64::try_from(of.len()).unwrap()
    }

    /// No tool.
    fn rounded(cents: u64) -> u64 {
        cents
    }
}

#[tokio::test]
async fn case_15_methods_are_tools_that_share_their_value() {
    let mut contexts = Contexts::new();
    contexts.insert(Till::default());
    contexts.insert(2_u64);
    let context = context(contexts, None);
    for total in [8, 16] {
        let done = call_with::<put>(r#"{"cents":5}"#, context.clone()).await;
        assert_eq!(done.unwrap(), Flow::Done(json!(total)));
    }
    let done = call_with::<CountTill>("{}", context.clone()).await;
    assert_eq!(done.unwrap(), Flow::Done(json!(16)));
    let done = call_with::<price>(r#"{"of":"abc"}"#, context).await;
    assert_eq!(done.unwrap(), Flow::Done(json!(6)));
    assert_eq!(properties::<put>(), ["cents", "extra"]);
}

#[test]
fn case_15_the_value_is_a_context_that_is_missed_by_name() {
    let needed = put::spec().contexts;
    let missing = Contexts::new().missing(&needed);
    assert!(missing[0].ends_with("::Till"), "{missing:?}");
    assert_eq!(CountTill::NAME, "count_till");
    assert!(put::spec().approval.required && CountTill::spec().hints.read_only);
    // The methods are still methods.
    assert_eq!(Till::default().count(), Ok(0));
}
