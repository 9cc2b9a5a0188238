use std::rc::Rc;

use agentkit::tool;

async fn pause() {}

/// Holds an `Rc` across an await.
#[tool]
async fn f(a: u8) -> u8 {
    let shared = Rc::new(a);
    pause().await;
    *shared
}

fn main() {}
