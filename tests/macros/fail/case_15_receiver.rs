use agentkit::tool;

struct Shop;

impl Shop {
    /// A method.
    #[tool]
    fn f(&self, a: i64) -> i64 {
        a
    }
}

fn main() {
    // The method is still there.
    let _ = Shop.f(1);
}
