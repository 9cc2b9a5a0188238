use std::{collections::HashMap, fmt, sync::Arc};

use super::{DynTool, SourceLocation};

/// Two tools of one name in one set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "two tools are called `{name}`: one {}, one {}; give one of them another name with \
     `#[tool(name = \"…\")]`",
    place(*first), place(*second)
)]
pub struct DuplicateTool {
    name: String,
    first: Option<SourceLocation>,
    second: Option<SourceLocation>,
}

fn place(source: Option<SourceLocation>) -> String {
    source.map_or_else(
        || "declared at run time".to_owned(),
        |source| format!("declared at {source}"),
    )
}

impl DuplicateTool {
    /// The name that both have.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the two are declared, in the order of the set; `None` for a tool that was made at
    /// run time.
    pub fn sources(&self) -> [Option<SourceLocation>; 2] {
        [self.first, self.second]
    }
}

/// Tools in the order in which they are offered to a model, each name once.
#[derive(Clone, Default)]
pub struct ToolSet {
    tools: Vec<Arc<dyn DynTool>>,
    by_name: HashMap<String, usize>,
}

impl ToolSet {
    /// A set of these tools.
    ///
    /// # Errors
    ///
    /// When two tools have the same name.
    pub fn new(tools: Vec<Arc<dyn DynTool>>) -> Result<Self, DuplicateTool> {
        let mut by_name = HashMap::with_capacity(tools.len());
        for (index, tool) in tools.iter().enumerate() {
            let name = tool.spec().name.clone();
            if let Some(earlier) = by_name.insert(name, index) {
                let first = tools.get(earlier).and_then(|tool| tool.spec().source);
                return Err(DuplicateTool {
                    name: tool.spec().name.clone(),
                    first,
                    second: tool.spec().source,
                });
            }
        }
        Ok(Self { tools, by_name })
    }

    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn DynTool>> {
        self.tools.get(*self.by_name.get(name)?)
    }

    /// The tools in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<dyn DynTool>> {
        self.tools.iter()
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }
}

impl IntoIterator for ToolSet {
    type Item = Arc<dyn DynTool>;
    type IntoIter = std::vec::IntoIter<Arc<dyn DynTool>>;

    fn into_iter(self) -> Self::IntoIter {
        self.tools.into_iter()
    }
}

impl fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.tools.iter().map(|tool| &tool.spec().name))
            .finish()
    }
}
