use agentkit::tools;

pub struct Shop;

#[tools]
impl Shop {
    /// Changes its state.
    #[tool]
    fn f(&mut self, a: i64) -> i64 {
        a
    }

    /// Takes it away.
    #[tool(reed_only)]
    fn g(self, (a, b): (i64, i64)) -> i64 {
        a + b
    }
}

pub struct Depot<T>(T);

#[tools]
impl<T> Depot<T> {
    /// Generic.
    #[tool]
    fn h(&self) {}
}

#[tools]
impl Clone for Shop {
    #[tool]
    fn clone(&self) -> Self {
        Self
    }
}

#[tools]
impl Shop {
    fn no_tool(&self) {}
}

#[tools(read_only)]
struct NoImpl;

fn main() {
    // The methods are still there.
    let _ = Shop.f(1);
    Depot(1).h();
}
