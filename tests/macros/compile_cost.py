#!/usr/bin/env python3
"""What a hundred tools cost to compile: with `#[tool]`, with a hand-written `impl Tool`, and with
rmcp's `#[tool]`, in one run. Run by hand; needs the crates registry for rmcp.

    tests/macros/compile_cost.py [tools [rounds]]

Three crates with the same tools are generated into a temporary folder, and with each of them one
without tools. All dependencies are built first. Then each crate is checked and built again and
again, in turn, so that a busy moment of the machine meets all of them. Printed is the processor
time of a tool: the least of all rounds, less that of the crate without tools.
"""

import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
TOOLS = int(sys.argv[1]) if len(sys.argv) > 1 else 100
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5

TYPES = """
/// The state that tools share.
pub struct Shop {
    /// In cents.
    pub till: u64,
}

/// What a tool gives.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct Receipt {
    /// The order.
    pub order: String,
    /// In cents.
    pub cents: u64,
}
"""

BODY = """
    if amount_cents > {till} {{
        return Err(note.unwrap_or_else(|| "too much".to_owned()));
    }}
    Ok({receipt}Receipt {{ order: order_id, cents: amount_cents + {number} }}{end})
"""


def with_macro(count):
    tools = "".join(
        f"""
/// Does the thing of number {n}.
#[tool]
pub async fn tool_{n}(
    /// The order, such as `ord-1042`.
    order_id: String,
    /// Amount in cents.
    amount_cents: u64,
    /// What to say to the customer.
    note: Option<String>,
    #[ctx] shop: &Shop,
) -> Result<Receipt, String> {{{BODY.format(till="shop.till", receipt="", end="", number=n)}}}
"""
        for n in range(count)
    )
    names = ", ".join(f"tool_{n}" for n in range(count))
    return f"""use std::sync::Arc;
use agentkit::{{tool, tool::{{DynTool, tools}}}};
{TYPES}{tools}
/// All of them.
pub fn all() -> Vec<Arc<dyn DynTool>> {{
    tools![{names}]
}}
"""


def by_hand(count):
    tools = "".join(
        f"""
/// Does the thing of number {n}.
pub async fn tool_{n}(
    order_id: String,
    amount_cents: u64,
    note: Option<String>,
    shop: &Shop,
) -> Result<Receipt, String> {{{BODY.format(till="shop.till", receipt="", end="", number=n)}}}

/// The arguments.
#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Args{n} {{
    /// The order, such as `ord-1042`.
    pub order_id: String,
    /// Amount in cents.
    pub amount_cents: u64,
    /// What to say to the customer.
    pub note: Option<String>,
}}

/// The tool.
pub struct Tool{n};

impl Tool for Tool{n} {{
    const NAME: &'static str = "tool_{n}";
    type Args = Args{n};
    type Output = Receipt;
    type Suspend = Never;
    type Resume = Never;

    fn spec() -> ToolSpec {{
        let schema = schemars::schema_for!(Args{n}).to_value();
        let mut spec = ToolSpec::new(Self::NAME, "Does the thing of number {n}.", schema);
        spec.output_schema = Some(schemars::schema_for!(Receipt).to_value());
        spec.contexts.push(ContextType::of::<Shop>());
        spec
    }}

    async fn run(args: Args{n}, cx: ToolContext) -> Result<Flow<Value, Never>, ToolError> {{
        let shop = cx.context::<Shop>()?;
        match tool_{n}(args.order_id, args.amount_cents, args.note, &shop).await {{
            Ok(receipt) => serde_json::to_value(receipt)
                .map(Flow::Done)
                .map_err(|error| ToolError::new(error.to_string())),
            Err(why) => Err(ToolError::new(why)),
        }}
    }}
}}
"""
        for n in range(count)
    )
    names = ", ".join(f"erase::<Tool{n}>()" for n in range(count))
    return f"""use std::sync::Arc;
use agentkit::tool::{{
    ContextType, DynTool, Flow, Never, Tool, ToolContext, ToolError, ToolSpec, erase,
}};
use serde_json::Value;
{TYPES}{tools}
/// All of them.
pub fn all() -> Vec<Arc<dyn DynTool>> {{
    vec![{names}]
}}
"""


def with_rmcp(count):
    arguments = "".join(
        f"""
/// The arguments.
#[derive(serde::Deserialize, schemars::JsonSchema)]
pub struct Args{n} {{
    /// The order, such as `ord-1042`.
    pub order_id: String,
    /// Amount in cents.
    pub amount_cents: u64,
    /// What to say to the customer.
    pub note: Option<String>,
}}
"""
        for n in range(count)
    )
    tools = "".join(
        f"""
    /// Does the thing of number {n}.
    #[tool]
    pub async fn tool_{n}(
        &self,
        Parameters(Args{n} {{ order_id, amount_cents, note }}): Parameters<Args{n}>,
    ) -> Result<Json<Receipt>, String> {{{BODY.format(till="self.till", receipt="Json(", end=")", number=n)}}}
"""
        for n in range(count)
    )
    # A router without tools is an error that has to be asked for.
    router = "tool_router" if count else "tool_router(allow_empty)"
    return f"""use rmcp::{{
    Json, handler::server::{{router::tool::ToolRouter, wrapper::Parameters}}, tool, tool_router,
}};
{TYPES}{arguments}
#[{router}]
impl Shop {{{tools}
    /// All of them.
    pub fn all() -> ToolRouter<Self> {{
        Self::tool_router()
    }}
}}
"""


AGENTKIT = f'agentkit = {{ path = "{REPOSITORY / "agentkit"}" }}'
RMCP = 'rmcp = { version = "*", default-features = false, features = ["server", "macros"] }'
KINDS = {
    "#[tool]": (with_macro, AGENTKIT),
    "impl Tool by hand": (by_hand, AGENTKIT),
    "rmcp #[tool]": (with_rmcp, RMCP),
}


def generate(folder):
    members = {}
    for index, (kind, (source, dependency)) in enumerate(KINDS.items()):
        for count in (0, TOOLS):
            name = f"kind_{index}_of_{count}"
            crate = folder / name
            (crate / "src").mkdir(parents=True)
            (crate / "Cargo.toml").write_text(
                f'[package]\nname = "{name}"\nversion = "0.0.0"\nedition = "2024"\n\n'
                f'[dependencies]\n{dependency}\nschemars = "1"\n'
                'serde = { version = "1", features = ["derive"] }\nserde_json = "1"\n'
            )
            text = source(count)
            if count == 0:
                text = "#![allow(unused_imports)]\n" + text
            (crate / "src/lib.rs").write_text(text)
            members[kind, count] = name
    (folder / "Cargo.toml").write_text('[workspace]\nmembers = ["kind_*"]\nresolver = "3"\n')
    (folder / "Cargo.lock").write_bytes((REPOSITORY / "Cargo.lock").read_bytes())
    return members


def run(folder, command, package):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    # Incremental state of an earlier round would make the next one cheaper than the first.
    environment = {**os.environ, "CARGO_INCREMENTAL": "0"}
    subprocess.run(
        ["cargo", command, "--quiet", "--package", package],
        cwd=folder, env=environment, check=True,
    )
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def version(folder, package):
    lock = (folder / "Cargo.lock").read_text()
    return lock.split(f'name = "{package}"\nversion = "')[1].split('"')[0]


def main():
    with tempfile.TemporaryDirectory(prefix="agentkit-compile-cost-") as folder:
        folder = pathlib.Path(folder)
        members = generate(folder)
        for command in ("check", "build"):
            for name in members.values():
                run(folder, command, name)
            seen = {key: [] for key in members}
            for _ in range(ROUNDS):
                for key, name in members.items():
                    os.utime(folder / name / "src/lib.rs")
                    seen[key].append(run(folder, command, name))
            cost = {
                kind: (min(seen[kind, TOOLS])[0] - min(seen[kind, 0])[0]) / TOOLS * 1000
                for kind in KINDS
            }
            print(
                f"cargo {command}, {TOOLS} tools, least of {ROUNDS} rounds, processor time,"
                f" rmcp {version(folder, 'rmcp')}",
                flush=True,
            )
            for kind, milliseconds in cost.items():
                wall = min(wall for _, wall in seen[kind, TOOLS])
                by_hand_ratio = milliseconds / cost["impl Tool by hand"]
                rmcp_ratio = milliseconds / cost["rmcp #[tool]"]
                print(
                    f"  {kind:18} {milliseconds:7.2f} ms a tool,"
                    f" {by_hand_ratio:.2f} of by hand, {rmcp_ratio:.2f} of rmcp"
                    f" (whole crate {wall:.1f} s by the clock)"
                )


if __name__ == "__main__":
    main()
